"""ls: the list of runs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from trainhub_cli.formats import format_duration, format_time, run_duration_s
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option, watch_option
from trainhub_cli.printing import print_json
from trainhub_cli.tables import Column, name, number, print_table

if TYPE_CHECKING:
    from datetime import datetime

    from trainhub_sdk.api_connection import ApiConnection

COUNT, LARGEST_PAGE = 20, 500
COLUMNS = [
    number("RUN"),
    Column("STATE"),
    name("NAME"),
    name("EXPERIMENT", 2),
    name("CLUSTER", 4),
    name("BY", 3),
    Column("SUBMITTED", rank=1),
    number("TIME", 5),
]


@click.command("ls")
@click.option(
    "--filter", "-f", "filter_", default="", metavar="TEXT", help="As on the page Runs: state = 'Failed'"
)
@click.option(
    "--order", default="", metavar="KEY", help="Such as `metrics.acc DESC`; by default the newest first."
)
@click.option("--all", "-a", "every", is_flag=True, help="All of them.")
@click.option("-n", "count", type=click.IntRange(1), default=COUNT, show_default=True, help="So many.")
@watch_option
@json_option
@profile_option
def list_runs(*, filter_: str, order: str, every: bool, count: int, watch: bool, as_json: bool) -> None:
    """List the runs of the workspace, the newest first.

    The filter has the grammar of the page Runs, for example

      trainhub ls -f "metrics.val_loss < 0.1 AND params.opt = 'adam'"
    """
    api = open_api()
    limit = None if every else count

    def read_rows() -> list[dict[str, Any]]:
        return _read(api, filter_, order, limit)

    if watch:
        from trainhub_cli.live_screen import show_live

        show_live("Runs", COLUMNS, lambda: [_cells(row, api.now()) for row in read_rows()])
    elif as_json:
        print_json(read_rows())
    else:
        print_table(COLUMNS, [_cells(row, api.now()) for row in read_rows()], "There are no such runs.")


def _read(api: ApiConnection, filter_: str, order: str, limit: int | None) -> list[dict[str, Any]]:
    rows = api.pages(
        "/api/v1/runs/",
        filter=filter_ or None,
        order=order or None,
        page_size=min(limit or LARGEST_PAGE, LARGEST_PAGE),
    )
    return list(islice(rows, limit))


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    return [
        str(row["number"]),
        row["state"],
        row["display_name"],
        row["experiment"],
        row["cluster"],
        row["created_by"] or "-",
        format_time(row["created_at"]),
        format_duration(run_duration_s(row["started_at"], row["finished_at"], now)),
    ]
