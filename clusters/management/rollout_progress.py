"""Options of the commands that order versions of agents, and what they print until the end."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from clusters.agent_upgrades.states import RolloutState
from clusters.models import AgentRollout, NodeUpgrade

POLL_INTERVAL_S = 1.0


def add_upgrade_options(parser: argparse.ArgumentParser, *, with_user: bool = True) -> None:
    if with_user:
        parser.add_argument("--user", default="", help="act as this operator (default: the first one)")
    parser.add_argument(
        "--back", action="store_true", help="order this hub's version even where a newer one runs"
    )
    parser.add_argument(
        "--wait", action="store_true", help="show progress until the end; exit with 1 if it fails"
    )


def follow_rollout(rollout: AgentRollout, write: Callable[[str], object], *, wait: bool) -> None:
    """Prints what was ordered, and with `wait` each change until the end. Raises SystemExit(1) if a node
    failed."""
    nodes = [part.node.name for part in rollout.parts.select_related("node")]
    write(f"Ordered version {rollout.version} for {', '.join(nodes)}, {rollout.at_once} at a time.")
    if not wait:
        return
    printed: dict[int, str] = {}
    while True:
        rollout.refresh_from_db()
        for part in rollout.parts.select_related("node"):
            if printed.get(part.pk) != (line := _line(part)):
                printed[part.pk] = line
                write(line)
        if rollout.state != RolloutState.RUNNING:
            break
        time.sleep(POLL_INTERVAL_S)
    write(f"The rollout is {rollout.state}.")
    if rollout.state != RolloutState.DONE:
        raise SystemExit(1)


def _line(part: NodeUpgrade) -> str:
    return "\t".join(filter(None, (part.node.name, part.step or part.state, part.why)))
