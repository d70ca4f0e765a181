"""Runs that held GPUs at moments that a test names."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clusters.models import Lease, Node
from jobs.models import Attempt, Run
from jobs.scheduling import run_actions
from tests.clusters.telemetry.builders import block, stored
from tests.jobs.builders import Played, ended, launched, processes
from trainhub_launch.report import Ack
from trainhub_launch.telemetry import BUCKET_S
from workspaces.access import Principal


class Quiet(Played):
    """Its heartbeat, in which it would have no GPUs, is left out."""

    def report(self, **more: Any) -> Ack:
        return super().report(**{**more, "heartbeat": False})


def run_with_gpus(
    who: Principal, node: Node, start: datetime, end: datetime | None, *, gpus: int = 2, **changes: Any
) -> Run:
    """A run of one attempt that held `gpus` GPUs (0: a process slot) in that time; None: it still does."""
    more = {"distribution": processes(gpus), "resources": {"gpus_per_node": gpus}} if gpus else {}
    run = launched(who, **{**more, **changes})
    Quiet(node).claim(run)
    if end is not None:
        finish(node, run, 1, gpus)
    at(run, 1, start, end)
    run.refresh_from_db()
    return run


def again(node: Node, run: Run, start: datetime, end: datetime, *, attempt: int = 2, gpus: int = 2) -> None:
    """The next attempt of a run whose last one failed."""
    run_actions.launch(run.pk)
    Quiet(node).claim(run, attempt=attempt)
    finish(node, run, attempt, gpus)
    at(run, attempt, start, end)


def finish(node: Node, run: Run, attempt: int, ranks: int, code: int = 0) -> None:
    played = Quiet(node)
    played.claim(run, attempt=attempt)
    played.finish(run, *(ended(rank, code) for rank in range(ranks or 1)), attempt=attempt)


def at(run: Run, attempt: int, start: datetime, end: datetime | None) -> None:
    Lease.objects.filter(holder=run.pk, attempt=attempt).update(created_at=start, released_at=end)
    Attempt.objects.filter(run=run, number=attempt).update(created_at=start, ended_at=end)


def store_power(node: Node, start: datetime, seconds: int, watts: dict[str, float]) -> None:
    """What the GPUs' sensors told, by UUID, from `start` on, which is a multiple of ten seconds."""
    buckets = [{uuid: {"power_w": (value, value)} for uuid, value in watts.items()}] * (seconds // BUCKET_S)
    stored(node, block(int(start.timestamp()), buckets))
