"""Every GPU, or process slot where there are none, as a cell of its node."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from clusters.hearing import heard
from clusters.heartbeat import status
from clusters.models import Lease, Node
from clusters.visibility import visible_nodes
from jobs.models import Run
from workspaces.models import Workspace

MOST_CELLS = 64


@dataclass(frozen=True)
class Cell:
    """`label` says what holds it, or is empty: free. `heat_pct` is a GPU's utilisation, where it is known."""

    name: str
    label: str = ""
    run_number: int | None = None
    heat_pct: float | None = None


@dataclass(frozen=True)
class Machine:
    node: Node
    status: str
    cells: tuple[Cell, ...]
    gpus_busy: int
    gpus_total: int
    slots_busy: int
    slots_total: int


def machines(workspace: Workspace) -> list[Machine]:
    """The nodes that `workspace` may use. What runs of other workspaces hold is only "busy"."""
    nodes = list(visible_nodes(workspace).filter(revoked_at=None).prefetch_related("gpus"))
    held: dict[int, list[Lease]] = {}
    for lease in Lease.objects.filter(node__in=nodes, released_at=None).order_by("pk"):
        held.setdefault(lease.node_id, []).append(lease)
    holders = {lease.holder for leases in held.values() for lease in leases}
    numbers = dict(Run.objects.of(workspace).filter(pk__in=holders).values_list("pk", "number"))
    now = timezone.now()
    span = heard(now)
    return [_machine(node, str(status(node, now, span)), held.get(node.pk, []), numbers) for node in nodes]


def _machine(node: Node, state: str, leases: list[Lease], numbers: dict[str, int]) -> Machine:
    gpus = [gpu for gpu in node.gpus.all() if gpu.present]
    slots_busy = sum(lease.slots for lease in leases)
    owner = {uuid: lease for lease in leases for uuid in lease.gpus}
    if gpus:
        vitals = node.vitals.get("gpus", {})
        cells = tuple(
            _cell(f"GPU {gpu.index} · {gpu.name}", owner.get(gpu.uuid), numbers, vitals.get(gpu.uuid, {}).get("utilization_pct"))
            for gpu in gpus
        )
    else:
        holding = [lease for lease in leases for _ in range(lease.slots)]
        count = min(node.slots, MOST_CELLS)
        cells = tuple(_cell(f"Slot {index}", holding[index] if index < len(holding) else None, numbers) for index in range(count))
    return Machine(
        node=node, status=state, cells=cells, gpus_busy=sum(1 for gpu in gpus if gpu.uuid in owner), gpus_total=len(gpus),
        slots_busy=0 if gpus else slots_busy, slots_total=0 if gpus else node.slots,
    )


def _cell(name: str, lease: Lease | None, numbers: dict[str, int], heat_pct: float | None = None) -> Cell:
    if lease is None:
        return Cell(name, heat_pct=heat_pct)
    number = numbers.get(lease.holder)
    return Cell(name, f"run {number}" if number else "busy", number, heat_pct)
