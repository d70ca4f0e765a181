"""metrics and compare."""

from __future__ import annotations

import sys

import click

from trainhub_cli.formats import format_number
from trainhub_cli.hub_access import open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import print_json
from trainhub_cli.references import run_argument, runs_argument
from trainhub_cli.tables import name, number, print_table


@click.command("metrics")
@run_argument
@click.option("--csv", "as_csv", is_flag=True, help="Print all points as CSV: metric, step, time, value.")
@json_option
@profile_option
def list_metrics(run: str, as_csv: bool, as_json: bool) -> None:
    """List the metrics of a run: last, least and largest value, and how many points."""
    chosen = open_client().run(run)
    if as_csv:
        for piece in chosen.metrics_csv():
            sys.stdout.buffer.write(piece)
        return
    metrics = chosen.metrics().values()
    if as_json:
        print_json(metrics)
        return
    rows = [
        [metric["key"], *(format_number(metric[key]) for key in ("last", "min", "max", "last_step", "count"))]
        for metric in metrics
    ]
    columns = [
        name("METRIC"),
        number("LAST"),
        number("MIN"),
        number("MAX"),
        number("STEP", 1),
        number("POINTS", 2),
    ]
    print_table(columns, rows, f"Run {chosen.number} has logged no metrics.")


@click.command("compare")
@runs_argument
@json_option
@profile_option
def compare(runs: tuple[str, ...], as_json: bool) -> None:
    """Show the last values of the metrics of several runs side by side."""
    compared = open_client().compare(*runs)
    if as_json:
        print_json(compared)
        return
    values = [{metric["key"]: metric["last"] for metric in run["metrics"]} for run in compared]
    keys = sorted({key for row in values for key in row})
    rows = [[key, *(format_number(row.get(key)) for row in values)] for key in keys]
    columns = [name("METRIC"), *(number(f"RUN {run['number']}") for run in compared)]
    states = ["state", *(run["state"] for run in compared)]
    print_table(columns, [states, *rows], "")
