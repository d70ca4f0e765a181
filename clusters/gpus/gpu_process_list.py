"""The processes on a node's GPUs, as one workspace may know them: of another's runs only that they are
there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from clusters.models import Gpu, Lease
from clusters.overview import LeaseSummary, NodeCard, lease_summary
from workspaces.models import Workspace

Key = tuple[str, int]


@dataclass(frozen=True)
class GpuProcessRow:
    """A process on a GPU. `held`: the run that it belongs to, where this workspace may know it. `is_strange`:
    it belongs to a run of another one, and says neither its name nor its user. A number None = not known."""

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
    """In the order of the GPUs; `gpus`: on these alone."""
    told: Mapping[str, list[dict[str, Any]]] = card.node.vitals.get("processes", {})
    found = [(cell.gpu, item) for cell in card.gpus for item in told.get(cell.gpu.uuid, [])]
    wanted = [(gpu, item) for gpu, item in found if gpus is None or gpu.uuid in gpus]
    holders = _holders(card, workspace, {_key(item) for _, item in wanted if item["run"]})
    return [_line(gpu, item, holders) for gpu, item in wanted]


def _line(gpu: Gpu, item: Mapping[str, Any], holders: Mapping[Key, LeaseSummary]) -> GpuProcessRow:
    held = holders.get(_key(item))
    # Of a run that was never leased here nobody can tell whose it is.
    is_strange = bool(item["run"]) and (held is None or not held.holder)
    return GpuProcessRow(
        gpu=gpu,
        pid=item["pid"],
        name="" if is_strange else item["name"],
        user="" if is_strange else item["user"],
        memory_bytes=item["memory_bytes"],
        sm_pct=item["sm_pct"],
        rank=None if is_strange else item["rank"],
        lease=None if is_strange else held,
        is_hidden=is_strange,
    )


def _holders(card: NodeCard, workspace: Workspace, keys: set[Key]) -> dict[Key, LeaseSummary]:
    known = {lease.key: lease for lease in card.leases}
    if keys - known.keys():
        # A process may outlive its lease by a report or two.
        released = Lease.objects.filter(node=card.node, holder__in=[holder for holder, _ in keys])
        known |= {(lease.holder, lease.attempt): lease_summary(lease, workspace) for lease in released}
    return known


def _key(item: Mapping[str, Any]) -> Key:
    return str(item["run"]), int(item["attempt"])
