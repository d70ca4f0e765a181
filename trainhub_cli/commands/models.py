"""models ls, get, register."""

from __future__ import annotations

import click

from trainhub_cli.formats import format_time
from trainhub_cli.hub_access import open_api, open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_text
from trainhub_cli.progress import show_progress
from trainhub_cli.references import complete_run
from trainhub_cli.tables import Column, name, number, print_table


@click.group("models")
def models() -> None:
    """List, download and register models."""


@models.command("ls")
@json_option
@profile_option
def list_models(as_json: bool) -> None:
    """List the registered models."""
    rows = list(open_api().pages("/api/v1/models/"))
    if as_json:
        print_json(rows)
        return
    cells = [
        [
            row["name"],
            str(row["latest_version"]),
            ", ".join(f"@{alias} = {version}" for alias, version in row["aliases"].items()),
            format_time(row["updated_at"]),
            row["description"],
        ]
        for row in rows
    ]
    columns = [
        name("MODEL"),
        number("NEWEST"),
        name("ALIASES", 1),
        Column("CHANGED", rank=2),
        name("DESCRIPTION", 3),
    ]
    print_table(columns, cells, "No model is registered.")


@models.command("get")
@click.argument("model", metavar="NAME[:VERSION|@ALIAS]")
@click.option(
    "--output", "-o", default="", metavar="FOLDER", help="Where to; by default a folder of its name."
)
@profile_option
def download_model(model: str, output: str) -> None:
    """Download all files of a version, by default of the newest, and check their SHA-256."""
    separator = "@" if "@" in model else ":"
    title, _, version = model.partition(separator)
    chosen = open_client().model(title).version(version)
    with show_progress(model) as on_bytes:
        for path in chosen.download(output, on_bytes):
            print_text(clean(path))


@models.command("register")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@click.argument("path")
@click.argument("model", metavar="NAME")
@click.option("--description", default="", help="What it is.")
@json_option
@profile_option
def register(run: str, path: str, model: str, description: str, as_json: bool) -> None:
    """Register a file or folder that a run has left as the next version of the model NAME."""
    version = open_client().run(run).register_model(model, path, description=description)
    if as_json:
        print_json([version.json])
        return
    print_text(clean(f"{version.model}:{version.version}"))
