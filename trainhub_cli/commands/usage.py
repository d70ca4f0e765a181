"""usage."""

from __future__ import annotations

import click

from trainhub_cli.formats import NONE
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import print_json
from trainhub_cli.tables import name, number, print_table

GROUPS = ("user", "experiment", "cluster", "month", "run")


@click.command("usage")
@click.option(
    "--by", type=click.Choice(GROUPS), default="user", show_default=True, help="What the lines are."
)
@click.option("--from", "first", metavar="YYYY-MM", help="The first month.")
@click.option("--to", "last", metavar="YYYY-MM", help="The last month.")
@json_option
@profile_option
def list_usage(by: str, first: str | None, last: str | None, as_json: bool) -> None:
    """List what the runs of the workspace have used: GPU-hours, node-hours, energy."""
    answer = open_api().get("/api/v1/usage/", by=by, **{"from": first, "to": last})
    if as_json:
        print_json(answer["results"])
        return
    rows = [
        [
            f"{row['name']} {row['title']}".strip(),
            f"{row['gpu_hours']:.1f}",
            f"{row['node_hours']:.1f}",
            NONE if row["energy_wh"] is None else f"{row['energy_wh'] / 1000:.1f}",
            str(row["runs"]),
        ]
        for row in [*answer["results"], {**answer["total"], "name": "total"}]
    ]
    columns = [
        name(by.upper()),
        number("GPU-HOURS"),
        number("NODE-HOURS", 2),
        number("KWH", 1),
        number("RUNS"),
    ]
    print_table(columns, rows, "Nothing was used.")
