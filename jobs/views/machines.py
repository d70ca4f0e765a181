"""The board of machines: each GPU, or each process slot of a node without GPUs, as a cell of its node."""

from __future__ import annotations

from dataclasses import dataclass

from clusters.gpu_display import gpu_summary, heat
from clusters.gpus.gpu_cells import GpuCell, LeaseSummary
from clusters.models import Node
from clusters.overview import NodeCard, foremost, node_cards
from clusters.states import GpuUsage
from clusters.visibility import visible_nodes
from jobs.models import Run
from workspaces.models import Workspace

# Without a limit a node with hundreds of slots would fill the page; the counts beside the cells are complete.
MAX_CELLS = 64


@dataclass(frozen=True)
class BoardCell:
    """A GPU or process slot.

    `title`: its full description. `run_number`: the run that holds it, or None if it is free or the viewer
    may not see that run. `heat`: utilisation of a GPU from 0 to 10."""

    title: str
    status: str
    run_number: int | None = None
    is_leased: bool = False
    heat: int = 0


@dataclass(frozen=True)
class Machine:
    node: Node
    status: str
    cells: tuple[BoardCell, ...]
    gpus_busy: int
    gpus_total: int
    gpus_unhealthy: int
    slots_busy: int
    slots_total: int


@dataclass(frozen=True)
class Board:
    """The machines of a workspace: of many only the foremost, with the counts of all. `gpus` and `slots`: the
    busy ones, and all; the slots of nodes without GPUs."""

    machines: tuple[Machine, ...]
    count: int
    gpus: tuple[int, int]
    slots: tuple[int, int]


def machine_board(workspace: Workspace) -> Board:
    """Returns the nodes that the workspace may use. Resources that runs of other workspaces hold are only
    shown as busy."""
    cards = node_cards(visible_nodes(workspace).filter(revoked_at=None), workspace)
    shown = foremost(cards)
    holders = {line.holder for card in shown for line in card.leases}
    numbers = dict(Run.objects.for_workspace(workspace).filter(pk__in=holders).values_list("pk", "number"))
    without_gpus = [card for card in cards if not card.usable_gpus]
    return Board(
        tuple(_machine(card, numbers) for card in shown),
        len(cards),
        (sum(card.gpus_busy for card in cards), sum(len(card.usable_gpus) for card in cards)),
        (
            sum(card.slots_busy for card in without_gpus),
            sum(card.node.slots for card in without_gpus),
        ),
    )


def _machine(card: NodeCard, numbers: dict[str, int]) -> Machine:
    has_gpus = bool(card.usable_gpus)
    return Machine(
        node=card.node,
        status=str(card.status),
        gpus_busy=card.gpus_busy,
        gpus_total=len(card.usable_gpus),
        gpus_unhealthy=card.gpus_unhealthy,
        cells=tuple(_gpu(cell, numbers) for cell in card.usable_gpus) if has_gpus else _slots(card, numbers),
        slots_busy=0 if has_gpus else card.slots_busy,
        slots_total=0 if has_gpus else card.node.slots,
    )


def _gpu(cell: GpuCell, numbers: dict[str, int]) -> BoardCell:
    lease = cell.lease
    return BoardCell(
        gpu_summary(cell),
        str(cell.usage),
        numbers.get(lease.holder) if lease else None,
        is_leased=lease is not None,
        heat=heat(cell),
    )


def _slots(card: NodeCard, numbers: dict[str, int]) -> tuple[BoardCell, ...]:
    holding: list[LeaseSummary] = [line for line in card.leases for _ in range(line.slots)]
    return tuple(
        BoardCell(
            f"Slot {place}: {lease.label}",
            str(GpuUsage.BUSY),
            numbers.get(lease.holder),
            is_leased=True,
            heat=10,
        )
        if lease
        else BoardCell(f"Slot {place}: free", str(GpuUsage.FREE))
        for place, lease in enumerate((*holding, *(None,) * card.node.slots))
        # The free cells are more than enough; the condition cuts the row at the node's number of slots. It
        # also omits leased slots beyond a number that was lowered later.
        if place < min(card.node.slots, MAX_CELLS)
    )
