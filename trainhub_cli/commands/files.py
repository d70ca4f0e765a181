"""files ls, files get."""

from __future__ import annotations

import click

from trainhub_cli.formats import format_size
from trainhub_cli.hub_access import open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text
from trainhub_cli.progress import show_progress
from trainhub_cli.references import run_argument
from trainhub_cli.tables import name, number, print_table


@click.group("files")
def files() -> None:
    """List and download the files that a run has left."""


@files.command("ls")
@run_argument
@json_option
@profile_option
def list_outputs(run: str, as_json: bool) -> None:
    """List the files that the newest attempt of a run has left."""
    chosen = open_client().run(run)
    outputs = chosen.files() if chosen.attempt else []
    if as_json:
        print_json(file.json for file in outputs)
        return
    for removal in chosen.removed:
        if removal.kind == "outputs":
            print_note(clean(removal.sentence))
    rows = [[format_size(file.size_bytes), file.path] for file in outputs]
    print_table([number("SIZE"), name("PATH")], rows, f"Run {chosen.number} has left no files.")


@files.command("get")
@run_argument
@click.argument("path")
@click.option("--output", "-o", default="", metavar="FILE", help="Where to; by default its name, here.")
@profile_option
def download_file(run: str, path: str, output: str) -> None:
    """Download a file of a run. It is complete, or not there; a broken download continues."""
    chosen = open_client().run(run)
    with show_progress(path) as on_bytes:
        file = chosen.download(path, output, on_bytes)
    print_text(str(file))
