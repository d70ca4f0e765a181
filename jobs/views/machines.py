"""Every GPU, or process slot where there are none, as a cell of its node."""

from __future__ import annotations

from dataclasses import dataclass

from clusters.models import Node
from clusters.overview import GpuCell, LeaseSummary, NodeCard, node_cards
from clusters.states import GpuUsage
from clusters.templatetags.devices import gpu_summary, heat
from clusters.visibility import visible_nodes
from jobs.models import Run
from workspaces.models import Workspace

MOST_CELLS = 64


@dataclass(frozen=True)
class Cell:
    """`title` says all about it; `run_number` where it is held by a run that the reader may see. `heat`: 0 to
    10, of a GPU."""

    title: str
    standing: str
    run_number: int | None = None
    is_held: bool = False
    heat: int = 0


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
    cards = node_cards(visible_nodes(workspace).filter(revoked_at=None), workspace)
    holders = {line.holder for card in cards for line in card.leases}
    numbers = dict(Run.objects.for_workspace(workspace).filter(pk__in=holders).values_list("pk", "number"))
    return [_machine(card, numbers) for card in cards]


def _machine(card: NodeCard, numbers: dict[str, int]) -> Machine:
    has_gpus = bool(card.usable_gpus)
    return Machine(
        node=card.node,
        status=str(card.status),
        gpus_busy=card.gpus_busy,
        gpus_total=len(card.usable_gpus),
        cells=tuple(_gpu(cell, numbers) for cell in card.usable_gpus) if has_gpus else _slots(card, numbers),
        slots_busy=0 if has_gpus else card.slots_busy,
        slots_total=0 if has_gpus else card.node.slots,
    )


def _gpu(cell: GpuCell, numbers: dict[str, int]) -> Cell:
    held = cell.lease
    return Cell(
        gpu_summary(cell),
        str(cell.usage),
        numbers.get(held.holder) if held else None,
        is_held=held is not None,
        heat=heat(cell),
    )


def _slots(card: NodeCard, numbers: dict[str, int]) -> tuple[Cell, ...]:
    holding: list[LeaseSummary] = [line for line in card.leases for _ in range(line.slots)]
    return tuple(
        Cell(
            f"Slot {place}: {held.label}",
            str(GpuUsage.BUSY),
            numbers.get(held.holder),
            is_held=True,
            heat=10,
        )
        if held
        else Cell(f"Slot {place}: free", str(GpuUsage.FREE))
        for place, held in enumerate((*holding, *(None,) * card.node.slots))
        if place < min(card.node.slots, MOST_CELLS)
    )
