"""env ls, data ls, data upload."""

from __future__ import annotations

import click

from trainhub_cli.formats import format_size
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_text
from trainhub_cli.progress import show_progress
from trainhub_cli.tables import Column, name, number, print_table


@click.group("env")
def environments() -> None:
    """List environments: what --env takes."""


@environments.command("ls")
@json_option
@profile_option
def list_environments(as_json: bool) -> None:
    """List the environments, with what they contain."""
    rows = list(open_api().pages("/api/v1/environments/"))
    if as_json:
        print_json(rows)
        return
    cells = [
        [
            f"{row['name']}@{row['version']}" if row["version"] else row["name"],
            row["kind"],
            row.get("state") or "",
            format_size(row.get("download_bytes")),
            ", ".join(row["requirements"]),
        ]
        for row in rows
    ]
    columns = [Column("ENVIRONMENT"), Column("KIND", rank=2), Column("STATE", rank=3), number("DOWNLOAD", 4)]
    print_table([*columns, name("CONTAINS", 1)], cells, "There are no environments.")


@click.group("data")
def datasets() -> None:
    """List and upload datasets: what --input takes."""


@datasets.command("ls")
@json_option
@profile_option
def list_datasets(as_json: bool) -> None:
    """List the datasets, each with its newest version."""
    rows = list(open_api().pages("/api/v1/datasets/"))
    if as_json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        newest = row["newest"] or {"version": "-", "files": "-", "bytes": None}
        place = f"{row['datastore']}:{row['path']}" if row["path"] else row["datastore"]
        size = format_size(newest["bytes"])
        cells.append(
            [row["name"], str(newest["version"]), str(newest["files"]), size, place, row["description"]]
        )
    columns = [name("DATASET"), number("VERSION"), number("FILES"), number("SIZE")]
    print_table([*columns, name("IN", 1), name("DESCRIPTION", 2)], cells, "There are no datasets.")


@datasets.command("upload")
@click.argument("dataset", metavar="NAME")
@click.argument("path", type=click.Path(exists=True))
@click.option("--datastore", default="", metavar="NAME", help="Where a new dataset is made.")
@json_option
@profile_option
def upload_dataset(dataset: str, path: str, datastore: str, as_json: bool) -> None:
    """Make a file, or the files of a folder, the next version of the dataset NAME.

    Run it again after a break: it goes on where it was."""
    from trainhub_sdk.uploads.dataset_upload import upload_folder

    with show_progress(dataset) as on_bytes:
        version = upload_folder(open_api(), dataset, path, datastore, on_bytes)
    if as_json:
        print_json([version.json])
        return
    files = "1 file" if version.files == 1 else f"{version.files:,} files"
    print_text(clean(f"{version.dataset}:{version.version}, {files}, {format_size(version.bytes)}"))
