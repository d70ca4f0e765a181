"""logs."""

from __future__ import annotations

import re

import click

from trainhub_cli import exit_codes
from trainhub_cli.hub_access import open_client
from trainhub_cli.log_output import follow_run, print_log
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import print_json
from trainhub_cli.references import run_argument


@click.command("logs")
@run_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@click.option("--rank", metavar="K|all", default="", help="Which process; by default the first one.")
@click.option("-n", "--lines", type=click.IntRange(0), help="Begin with so many of the last lines.")
@click.option("--grep", metavar="PATTERN", help="Only lines in which this regular expression matches.")
@json_option
@profile_option
def show_logs(
    *, run: str, follow: bool, rank: str, lines: int | None, grep: str | None, as_json: bool
) -> int:
    """Print the log of the newest attempt of a run. With --json: the list of its logs.

    While it follows, Ctrl-C detaches and the run continues; a second one within 2 s stops the run."""
    every_rank = rank == "all"
    if rank and not every_rank and not rank.isdigit():
        raise click.UsageError("--rank: write a number such as 0, or all.")
    number = int(rank) if rank.isdigit() else None
    pattern = _compile(grep)
    chosen = open_client().run(run)
    if as_json:
        print_json(log.json for log in chosen.log_list())
        return exit_codes.COMPLETED
    if follow:
        return follow_run(chosen, rank=number, every_rank=every_rank, last_lines=lines, pattern=pattern)
    from trainhub_sdk.log_reader import read_logs

    parts = read_logs(chosen, number, every_rank=every_rank, last_lines=lines)
    print_log(parts, every_rank, pattern)
    return exit_codes.COMPLETED


def _compile(grep: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(grep) if grep is not None else None
    except re.error as error:
        raise click.UsageError(f"--grep: {grep} is no regular expression: {error}.") from error
