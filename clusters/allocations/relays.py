"""The relays of all clusters: through the login node of its Slurm, nodes reach a hub that they cannot reach
themselves.

The worker keeps them. Of several workers one does, until nothing is heard of it for a while."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from clusters.allocations import partitions
from clusters.allocations.login_keys import login_folder
from clusters.allocations.relay_process import RelayPlan, RelayProcess
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.models import SlurmPartition

HOLD_FOR = timedelta(seconds=30)
PORTS = {"http": 80, "https": 443}
# Of this process, by the cluster.
_processes: dict[int, RelayProcess] = {}


def relay_address(row: SlurmPartition) -> tuple[str, int] | None:
    """Returns where nodes reach the hub on the login node, None without a relay."""
    host = partitions.login_host(row)
    if host is None or not row.relay_port:
        return None
    return row.relay_host or host.name, row.relay_port


def hub_url_for(row: SlurmPartition) -> str:
    """Returns the URL at which the nodes of this cluster reach the hub."""
    address = relay_address(row)
    if address is None:
        return str(settings.API_URL)
    return f"{urlsplit(settings.API_URL).scheme}://{address[0]}:{address[1]}"


def trouble_of(row: SlurmPartition) -> str:
    """Returns why the relay does not stand, "" if it does."""
    if row.relay_seen_at is None or timezone.now() - row.relay_seen_at > HOLD_FOR:
        return "No worker of the hub keeps it yet. If that lasts for a minute, see the worker's log."
    return row.relay_trouble


def tend() -> None:
    """Starts, looks at and ends the relays, so that they are as the settings say."""
    rows = [
        row
        for row in SlurmPartition.objects.filter(cluster__deleted_at=None, relay_port__gt=0)
        if row.command_host and _claim(row)
    ]
    for cluster_id in _processes.keys() - {row.cluster_id for row in rows}:
        _processes.pop(cluster_id).close()
    for row in rows:
        trouble = _tend_one(row)
        if trouble != row.relay_trouble:
            SlurmPartition.objects.filter(pk=row.pk).update(relay_trouble=trouble)


def _claim(row: SlurmPartition) -> bool:
    """Whether this worker keeps the relay: it did, or nobody does."""
    now = timezone.now()
    free = Q(relay_holder=_own_name()) | Q(relay_seen_at=None) | Q(relay_seen_at__lt=now - HOLD_FOR)
    mine = SlurmPartition.objects.filter(free, pk=row.pk)
    return bool(mine.update(relay_holder=_own_name(), relay_seen_at=now))


def _tend_one(row: SlurmPartition) -> str:
    """Returns why the relay does not stand, "" if it does."""
    try:
        plan = _plan(row)
    except SlurmError as error:
        return str(error)
    process = _processes.get(row.cluster_id)
    if process is not None and process.plan == plan:
        process.tend()
        return process.trouble
    if process is not None:
        process.close()
    _processes[row.cluster_id] = RelayProcess(plan)
    return _processes[row.cluster_id].trouble


def _plan(row: SlurmPartition) -> RelayPlan:
    host, address = partitions.login_host(row), relay_address(row)
    if host is None or address is None:
        raise SlurmError(SlurmFault.UNREACHABLE, "There is no login node.")
    return RelayPlan(host, login_folder(row, host), address, own_address())


def own_address() -> tuple[str, int]:
    """Returns where the hub is reached from its own machine: where other programs reach it."""
    parts = urlsplit(settings.API_URL)
    return parts.hostname or "localhost", parts.port or PORTS.get(parts.scheme, PORTS["https"])


def _own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:100]
