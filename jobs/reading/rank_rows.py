from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusters.models import Node
from jobs.models import Run


@dataclass(frozen=True)
class RankRow:
    """How fast a rank reads now: see trainhub_launch.telemetry.RankRead."""

    rank: int
    node: str
    calls_bytes_s: float
    storage_bytes_s: float


def rank_rows(run: Run, attempt: int, nodes: Iterable[Node]) -> list[RankRow]:
    """Returns the ranks that are measured, in their order; none for agents that do not measure them."""
    rows = [
        RankRow(item["rank"], node.name, item["calls_bytes_s"], item["storage_bytes_s"])
        for node in nodes
        for item in node.vitals.get("reads", ())
        if (item["run"], item["attempt"]) == (run.pk, attempt)
    ]
    return sorted(rows, key=lambda row: row.rank)
