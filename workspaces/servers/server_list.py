"""The servers of this hub, as operators see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Now
from prometheus_client.core import GaugeMetricFamily, Metric

from workspaces.servers import server_registry
from workspaces.servers.differences import server_warnings
from workspaces.servers.models import RoundLease, ServerProcess
from workspaces.servers.round_lease import PERIODIC_TASKS


@dataclass(frozen=True)
class ServerState:
    """A web server or worker. `part`: web or worker. `address`: "" for none. `clock_offset_s`: by how much
    its clock is ahead of the database's. `is_leader`: it runs the periodic tasks."""

    name: str
    part: str
    address: str
    version: str
    started_at: datetime
    silent_s: float
    clock_offset_s: float
    is_leader: bool

    @property
    def is_living(self) -> bool:
        return self.silent_s <= server_registry.DEAD_AFTER_S


def server_states() -> list[ServerState]:
    """Returns nothing on a database that one server alone can use."""
    if not server_registry.is_shareable():
        return []
    silence_s = server_registry.silence_s()
    # Work that must not overlap has leases of its own, which any worker may have.
    leases = RoundLease.objects.filter(name=PERIODIC_TASKS, until__gt=Now())
    leaders = set(leases.values_list("holder", flat=True))
    return [
        ServerState(
            row.name,
            row.role,
            row.address,
            row.version,
            row.started_at,
            silence_s.get(row.pk, 0.0),
            row.clock_offset_s,
            row.role == server_registry.WORKER and f"{row.name}:{row.machine}" in leaders,
        )
        for row in ServerProcess.objects.all()
    ]


def server_metrics() -> Iterator[Metric]:
    """Yields the clocks of the living servers, and how many things an operator should mend on them."""
    living = [server for server in server_states() if server.is_living]
    if not living:
        return
    clocks = GaugeMetricFamily(
        "trainhub_server_clock_offset_seconds",
        "By how much the clock of a server is ahead of the database's.",
        labels=("server", "part"),
    )
    for server in living:
        clocks.add_metric((server.name, server.part), server.clock_offset_s)
    warnings = GaugeMetricFamily(
        "trainhub_server_warnings",
        "Settings in which servers differ, and wrong clocks; the page System names them.",
    )
    warnings.add_metric((), len(server_warnings()))
    yield from (clocks, warnings)
