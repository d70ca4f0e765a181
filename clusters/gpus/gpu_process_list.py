"""The processes on a node's GPUs, as one workspace may know them: details of other workspaces' runs are
hidden."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from clusters.gpus.gpu_cells import LeaseSummary, lease_summary
from clusters.models import Gpu, Lease
from clusters.node_reports.inventory import ProcessVitals
from clusters.overview import NodeCard
from workspaces.models import Workspace

Key = tuple[str, int]


@dataclass(frozen=True)
class GpuProcessRow:
    """A process on a GPU. `lease`: that of its run, if this workspace may know it. `is_hidden`: it belongs to
    a run of another workspace, and its name and user are empty. Numbers: None = unknown."""

    gpu: Gpu
    pid: int
    name: str
    user: str
    memory_bytes: int | None
    sm_pct: float | None
    rank: int | None
    lease: LeaseSummary | None
    is_hidden: bool


def process_lines(
    card: NodeCard, workspace: Workspace, gpus: Collection[str] | None = None
) -> list[GpuProcessRow]:
    """Returns the processes in the order of the GPUs; `gpus` limits them to these UUIDs."""
    by_gpu: Mapping[str, list[ProcessVitals]] = card.node.vitals.get("processes", {})
    processes = [(cell.gpu, item) for cell in card.gpus for item in by_gpu.get(cell.gpu.uuid, [])]
    selected = [(gpu, item) for gpu, item in processes if gpus is None or gpu.uuid in gpus]
    holders = _holders(card, workspace, {_key(item) for _, item in selected if item["run"]})
    return [_line(gpu, item, holders) for gpu, item in selected]


def _line(gpu: Gpu, item: ProcessVitals, holders: Mapping[Key, LeaseSummary]) -> GpuProcessRow:
    lease = holders.get(_key(item))
    # The workspace of a run without a lease on this node is unknown, so its process is hidden.
    is_hidden = bool(item["run"]) and (lease is None or not lease.holder)
    return GpuProcessRow(
        gpu=gpu,
        pid=item["pid"],
        name="" if is_hidden else item["name"],
        user="" if is_hidden else item["user"],
        memory_bytes=item["memory_bytes"],
        sm_pct=item["sm_pct"],
        rank=None if is_hidden else item["rank"],
        lease=None if is_hidden else lease,
        is_hidden=is_hidden,
    )


def _holders(card: NodeCard, workspace: Workspace, keys: set[Key]) -> dict[Key, LeaseSummary]:
    by_key = {lease.key: lease for lease in card.leases}
    if keys - by_key.keys():
        # A process may outlive its lease by one or two reports.
        released = Lease.objects.filter(node=card.node, holder__in=[holder for holder, _ in keys])
        by_key |= {(lease.holder, lease.attempt): lease_summary(lease, workspace) for lease in released}
    return by_key


def _key(item: ProcessVitals) -> Key:
    return str(item["run"]), int(item["attempt"])
