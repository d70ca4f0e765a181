"""export and import: specs in the formats of other launchers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable

import click

from trainhub_cli.hub_access import open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text
from trainhub_cli.references import complete_run
from trainhub_cli.spec_files import load_spec
from trainhub_sdk.errors import TrainHubError

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.records.runs import SpecExport, SpecNote

DETERMINED = "determined"
_SPEC_FILES = (".json", ".yaml", ".yml")


@click.command("export")
@click.argument("run", metavar="RUN|SPEC.json", shell_complete=complete_run)
@click.option(
    "--to",
    "to",
    required=True,
    metavar="FORMAT",
    help="sbatch, commands, azureml, trainjob, skypilot, dstack or torchx.",
)
@click.option("--output", "-o", metavar="FOLDER", type=click.Path(path_type=Path), help="Write files there.")
@json_option
@profile_option
def export_command(run: str, to: str, output: Path | None, as_json: bool) -> None:
    """Write a run, or a spec, for another launcher, where it runs without TrainHub.

    \b
    trainhub export 12 --to sbatch --output .
    trainhub export spec.json --to skypilot

    What the format cannot hold is said on standard error."""
    client = open_client()
    export = client.specs.export(_spec_of(client, run), to)
    if as_json:
        print_json([{"files": export.files, "notes": [vars(note) for note in export.notes]}])
        return
    _print_notes(export.notes)
    if output is not None:
        _write_files(export, output)
        return
    for name, text in export.files.items():
        if len(export.files) > 1:
            print_text(f"==> {clean(name)} <==")
        # A file as it has to be, for another program.
        print_text(str(text).rstrip("\n"))


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    required=True,
    metavar="FORMAT",
    help="sbatch, azureml, skypilot, dstack or determined.",
)
@click.option("--output", "-o", metavar="SPEC.json", type=click.Path(path_type=Path), help="Write it there.")
@json_option
@profile_option
def import_command(file: Path, source: str, output: Path | None, as_json: bool) -> None:
    """Make a spec of a file of another launcher, for `trainhub submit SPEC.json`.

    \b
    trainhub import train.sbatch --from sbatch --output spec.json
    trainhub submit spec.json --folder .

    What became of each line is said on standard error."""
    client = open_client()
    if source == DETERMINED:
        spec = _read_determined(client, file, output)
    else:
        result = client.specs.read(_text_of(file), source)
        if as_json:
            print_json([{"spec": result.spec, "notes": [vars(note) for note in result.notes]}])
            return
        _print_notes(result.notes)
        spec = result.spec
    import json

    text = json.dumps(spec, indent=2, ensure_ascii=False)
    if output is None:
        print_text(text)
    else:
        _write(output, f"{text}\n")


def _spec_of(client: Client, run: str) -> dict[str, Any]:
    """Returns the spec in a file, or that of a run."""
    if Path(run).suffix in _SPEC_FILES:
        # Where a spec names a folder, the files say that the code lies beside them.
        return load_spec(Path(run))[0]
    chosen = client.run(run)
    if not chosen.spec:
        raise click.UsageError(f"RUN: run {chosen.number} was not started by the hub, so it has no spec.")
    return dict(chosen.spec)


def _read_determined(client: Client, file: Path, output: Path | None) -> dict[str, Any]:
    """Returns the spec of an experiment of Determined, which the SDK reads beside its code."""
    from trainhub_sdk.determined.experiment import FILE_NAME, job_package

    experiment = client.specs.from_determined(file)
    for finding in experiment.findings:
        print_note(clean(f"{finding.severity}: {finding}"))
    if len(experiment.specs) > 1:
        raise TrainHubError(
            f"{file} searches with {len(experiment.specs)} runs, and a spec is one of them: submit them with "
            "client.specs.from_determined(FILE).submit(client)."
        )
    if output is not None:
        (output.parent / FILE_NAME).write_bytes(job_package())
        print_note(f"{FILE_NAME} has the package determined for scripts: keep it in the folder of the code.")
    else:
        print_note(
            f"With --output, {FILE_NAME} is written too, without which scripts cannot import determined."
        )
    return dict(experiment.spec)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise TrainHubError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise TrainHubError(f"{file} is not text: {error}.") from error


def _print_notes(notes: Iterable[SpecNote]) -> None:
    for note in notes:
        place = f"line {note.line}: " if note.line else ""
        print_note(clean(f"{place}{note.field}: {note.what}: {note.message}"))


def _write_files(export: SpecExport, folder: Path) -> None:
    for name, text in export.files.items():
        if Path(name).name != name:
            raise TrainHubError(f"The hub names a file {clean(name)!r}, which is no name of a file.")
        _write(folder / name, str(text))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TrainHubError(f"{path} cannot be written: {error.strerror}.") from error
    print_note(f"Wrote {path}")
