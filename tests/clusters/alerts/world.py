"""A node in the database whose facts a test changes, evaluated at intervals as by the worker."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from clusters.alerts import alert_store
from clusters.models import Alert, Gpu, Hearing, Lease, Node, NodeEvent
from tests.clusters.builders import GIB, ready_node
from workspaces.models import Workspace

BUSY = {"utilization_pct": 92.0, "power_w": 610.0, "power_limit_w": 700.0, "memory_used_bytes": 70.0 * GIB}


class World:
    """Time stands still until `tick` moves it; the node reports at each tick unless it is `silent`."""

    def __init__(
        self, *gpus: str, name: str = "alpha", cluster: str = "local", at: datetime | None = None
    ) -> None:
        self.now = at or timezone.now()
        self.node: Node = ready_node(name, *gpus, cluster=cluster, at=self.now)
        self.numbers: dict[str, dict[str, float]] = {uuid: dict(BUSY) for uuid in gpus}
        self.vitals: dict[str, Any] = {}
        self.silent = False

    def hold(
        self, *gpus: str, workspace: Workspace | None = None, label: str = "run 41", holder: str = "a" * 32
    ) -> Lease:
        return Lease.objects.create(
            node=self.node, holder=holder, attempt=1, workspace=workspace, label=label, gpus=list(gpus)
        )

    def set(self, uuid: str, **numbers: float | None) -> None:
        """None = the device does not tell it any more."""
        told = {**self.numbers[uuid], **numbers}
        self.numbers[uuid] = {name: value for name, value in told.items() if value is not None}

    def happen(self, kind: str, gpu: str, code: int = 0) -> None:
        NodeEvent.objects.create(node=self.node, kind=kind, message=kind, gpu=gpu, code=code, at=self.now)

    def lose(self, uuid: str, state: str = "lost") -> None:
        Gpu.objects.filter(pk=uuid).update(state=state)

    def tick(self, seconds: float = 10, times: int = 1) -> None:
        for _ in range(times):
            self.now += timedelta(seconds=seconds)
            self.report()
            alert_store.evaluate_all(self.now)

    def minutes(self, count: float) -> None:
        """At least as many; in larger steps where they are many, because each is a whole look at
        everything."""
        step = 10 if count <= 2 else 30
        self.tick(step, math.ceil(count * 60 / step))

    def report(self) -> None:
        Hearing.objects.update_or_create(
            pk=1, defaults={"since": self.now - timedelta(days=1), "until": self.now}
        )
        if self.silent:
            return
        vitals = {
            **Node.objects.get(pk=self.node.pk).vitals,
            "at": self.now.isoformat(),
            "gpus": self.numbers,
            **self.vitals,
        }
        Node.objects.filter(pk=self.node.pk).update(last_report_at=self.now, vitals=vitals)


def states(kind: str = "") -> list[str]:
    return list(alerts(kind).values_list("state", flat=True))


def alerts(kind: str = "") -> Any:
    found = Alert.objects.order_by("pk")
    return found.filter(kind=kind) if kind else found


def kinds(found: Iterable[Alert]) -> list[str]:
    return [alert.kind for alert in found]
