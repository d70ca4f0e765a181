"""upgrade-nodes."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import click

from trainhub_cli import exit_codes
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text

POLL_S = 1.0


@click.command("upgrade-nodes")
@click.argument("cluster")
@click.argument("node", required=False)
@click.option("--at-once", type=click.IntRange(min=1), default=1, metavar="N", help="Nodes at a time (1).")
@click.option("--back", is_flag=True, help="Order the hub's version even where a newer one runs.")
@click.option("--no-wait", is_flag=True, help="Return at once; otherwise show progress until the end.")
@json_option
@profile_option
def upgrade_nodes(
    cluster: str, node: str | None, *, at_once: int, back: bool, no_wait: bool, as_json: bool
) -> int:
    """Order agents to run the hub's version: all of a cluster, or one node. For operators.

    Runs go on. The first node that fails ends the order. Exits with 1 if a node has failed."""
    api = open_api()
    page = f"/api/v1/clusters/{quote(cluster, safe='')}/agents/"
    if node:
        address, body = f"/api/v1/nodes/{quote(node, safe='')}/upgrade/", {"may_go_back": back}
        rollout = api.call("POST", address, body)
    else:
        rollout = api.call("POST", page, {"at_once": at_once, "may_go_back": back})["rollout"]
    printed: dict[str, str] = {}
    while True:
        if not as_json:
            _print_changes(rollout, printed)
        if no_wait or rollout["state"] != "running":
            break
        time.sleep(POLL_S)
        current = api.get(page)["rollout"]
        if current["id"] != rollout["id"]:
            print_note("Somebody has given another order meanwhile.")
            break
        rollout = current
    if as_json:
        print_json([rollout])
    return exit_codes.FAILED if rollout["state"] == "failed" else exit_codes.COMPLETED


def _print_changes(rollout: dict[str, Any], printed: dict[str, str]) -> None:
    for part in rollout["nodes"]:
        line = "  ".join(filter(None, (part["node"], part["step"] or part["state"], part["why"])))
        if printed.get(part["node"]) != line:
            printed[part["node"]] = line
            print_text(clean(line))
