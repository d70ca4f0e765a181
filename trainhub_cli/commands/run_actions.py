"""wait and stop."""

from __future__ import annotations

import click

from trainhub_cli import exit_codes
from trainhub_cli.hub_access import open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text
from trainhub_cli.references import runs_argument


@click.command("wait")
@runs_argument
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after so long.")
@json_option
@profile_option
def wait_for_runs(runs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until all these runs have ended.

    Exits with 0 if all are completed, 1 if one has failed, else 130 if one was canceled;
    2 after --timeout."""
    client = open_client()
    chosen = [client.run(run) for run in runs]
    for run in chosen:
        try:
            run.wait(timeout, raise_on_error=False)
        except TimeoutError as error:
            print_note(str(error))
            return exit_codes.REFUSED
        if as_json:
            print_json([run.json])
        else:
            print_text(clean(run.explain()))
    return exit_codes.of_states(run.state for run in chosen)


@click.command("stop")
@runs_argument
@profile_option
def stop_runs(runs: tuple[str, ...]) -> None:
    """Stop runs: each gets its grace to save what it has."""
    client = open_client()
    # All are looked up first, so that a wrong number stops none.
    for run in [client.run(run) for run in runs]:
        if run.is_final:
            print_note(f"Run {run.number} has ended already: {run.state}.")
            continue
        run.cancel()
        print_text(f"Run {run.number} is asked to stop: {run.state}.")
