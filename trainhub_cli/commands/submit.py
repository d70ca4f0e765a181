"""submit and clone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainhub_cli import exit_codes
from trainhub_cli.hub_access import open_client
from trainhub_cli.log_output import follow_run
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_findings, print_json, print_note, print_text
from trainhub_cli.references import run_argument
from trainhub_cli.spec_files import load_spec
from trainhub_cli.spec_options import SpecOptions, apply_options, spec_options, words_to_spec

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.run import Run

_WORDS = "trainhub_cli.words"


class CommandWithWords(click.Command):
    """What stands behind `--` is the command line of the run, and none of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_WORDS] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command("submit", cls=CommandWithWords)
@click.argument("spec_file", metavar="[SPEC.json]", required=False, type=click.Path(path_type=Path))
@click.option("--folder", metavar="PATH", help="The code to send; by default this folder.")
@spec_options
@click.option("--watch", "-w", is_flag=True, help="Follow the log to the end, and exit as the run did.")
@click.option("--dry-run", is_flag=True, help="Print the plan and what is wrong; submit nothing.")
@json_option
@profile_option
def submit(
    spec_file: Path | None,
    folder: str | None,
    watch: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Submit a run of the code in a folder.

    \b
    trainhub submit --gpus 2 -- python train.py --epochs 3
    trainhub submit spec.json --set limits.retries=2 --watch

    With --watch it exits with 0 if the run is completed, 1 if it failed, 130 if it was canceled."""
    words = click.get_current_context().meta.get(_WORDS, [])
    if spec_file is None and not words:
        raise click.UsageError(
            "Name a spec file, or the command behind --, as in: trainhub submit -- python train.py"
        )
    spec, source = load_spec(spec_file) if spec_file else ({}, None)
    if words:
        spec = {key: spec[key] for key in spec if key not in ("script", "arguments", "command")}
        spec.update(words_to_spec(words))
    if folder is not None:
        source = Path(folder)
    elif source is None and not spec.get("source"):
        source = Path()
    apply_options(spec, SpecOptions(**options))
    client = open_client()
    if dry_run:
        return _preview(client, spec, source, as_json)
    return _start(client.submit(spec, source), client, watch, as_json)


@click.command("clone")
@run_argument
@spec_options
@click.option("--watch", "-w", is_flag=True, help="Follow the log to the end, and exit as the run did.")
@click.option("--dry-run", is_flag=True, help="Print the plan and what is wrong; submit nothing.")
@json_option
@profile_option
def clone(run: str, watch: bool, dry_run: bool, as_json: bool, **options: Any) -> int:
    """Submit the spec of a run again, with the same code; the options change it."""
    client = open_client()
    original = client.run(run)
    if not original.spec:
        raise click.UsageError(f"RUN: run {original.number} was not started by the hub, so it has no spec.")
    spec = dict(original.spec)
    # The new one gets a name with its own number.
    spec.pop("display_name", None)
    apply_options(spec, SpecOptions(**options))
    if dry_run:
        return _preview(client, spec, None, as_json)
    return _start(client.submit(spec, cloned_from=original.id), client, watch, as_json)


def _preview(client: Client, spec: dict[str, Any], source: Path | None, as_json: bool) -> int:
    preview = client.preview(spec, source)
    if as_json:
        print_json([preview.json])
    else:
        print_findings(preview.findings, client.api.url)
        if preview.printed:
            print_text(clean(preview.printed.rstrip()))
    return exit_codes.COMPLETED if preview.is_ok else exit_codes.REFUSED


def _start(run: Run, client: Client, watch: bool, as_json: bool) -> int:
    print_findings(run.findings, client.api.url)
    if as_json:
        print_json([run.json])
    elif watch:
        print_note(clean(f"Run {run.number}: {run.url}"))
    else:
        print_text(clean(f"Run {run.number}: {run.url}"))
    return follow_run(run, with_outcome=True) if watch else exit_codes.COMPLETED
