"""A LaunchPlan as the page draws it: nodes as boxes, processes as squares, the chosen rank's command.
Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from jobs.wizard.text_values import quoted
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess, Reference
from trainhub_launch.printing import shown_argv

MOST_BOXES = 16
MOST_SQUARES = 64
MOST_ROWS = 64
PROVISIONAL_GPU = re.compile(r"<GPU (\d+) of [^,]*>\Z")


@dataclass(frozen=True)
class Word:
    """One argument. `typed` is what was written where a reference was filled in."""

    text: str
    typed: str = ""

    @property
    def shown(self) -> str:
        """Quoted where it would otherwise not be seen where the word begins and ends."""
        return quoted(self.text)


@dataclass(frozen=True)
class Square:
    rank: int
    role: str
    gpus: tuple[str, ...]
    is_chosen: bool
    decides: bool


@dataclass(frozen=True)
class Box:
    name: str
    address: str
    node_rank: int
    squares: tuple[Square, ...]
    hidden: int


@dataclass(frozen=True)
class Variable:
    """`at_launch`: `text` stands for a value that is known only then. `setter`: who sets it, where TrainHub
    does not."""

    name: str
    text: str
    at_launch: bool = False
    is_mine: bool = False
    setter: str = ""


@dataclass(frozen=True)
class Row:
    """A rank, its command, and the variables in which it differs from the others."""

    process: PlannedProcess
    node: str
    gpus: tuple[str, ...]
    words: tuple[Word, ...]
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Picture:
    boxes: tuple[Box, ...]
    hidden_nodes: int
    node_count: int
    process_count: int
    gpu_count: int
    chosen: Row
    launcher: tuple[Word, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    rows: tuple[Row, ...]
    hidden_rows: int
    shared: tuple[Variable, ...]


def draw(plan: LaunchPlan, rank: int = 0, mine: Collection[str] = ()) -> Picture:
    """`rank`: the one whose command is shown; the first where there is no such rank."""
    processes = plan.processes
    chosen = next((process for process in processes if process.rank == rank), processes[0])
    return Picture(
        boxes=tuple(_box(command, chosen) for command in plan.commands[:MOST_BOXES]),
        hidden_nodes=max(0, len(plan.commands) - MOST_BOXES),
        node_count=len(plan.commands),
        process_count=len(processes),
        gpu_count=sum(
            len({gpu for process in command.processes for gpu in process.gpus}) for command in plan.commands
        ),
        chosen=_row(chosen, plan, shared=_told_elsewhere(plan, mine), mine=mine),
        launcher=tuple(Word(text) for command in plan.commands for text in command.launcher),
        notes=plan.notes,
    )


def tabulate(plan: LaunchPlan, mine: Collection[str] = ()) -> Table:
    """Rank × node × command × environment; `mine`: names of variables that the user set."""
    shared = _shared(plan)
    return Table(
        rows=tuple(_row(process, plan, shared=shared, mine=mine) for process in plan.processes[:MOST_ROWS]),
        hidden_rows=max(0, len(plan.processes) - MOST_ROWS),
        shared=tuple(
            _variable(name, value, plan.processes[0], mine) for name, value in sorted(shared.items())
        ),
    )


def _box(command: NodeCommand, chosen: PlannedProcess) -> Box:
    squares = tuple(
        Square(process.rank, process.role, _gpus(process), process is chosen, process.decides)
        for process in command.processes[:MOST_SQUARES]
    )
    hidden = len(command.processes) - len(squares)
    return Box(command.node, command.address, command.node_rank, squares, hidden)


def _row(
    process: PlannedProcess, plan: LaunchPlan, *, shared: dict[str, EnvValue], mine: Collection[str]
) -> Row:
    own = {name: value for name, value in _whole(process).items() if name not in shared}
    return Row(
        process=process,
        node=next(command.node for command in plan.commands if command.node_rank == process.node_rank),
        gpus=_gpus(process),
        words=tuple(
            Word(shown, typed if typed != shown else "")
            for typed, shown in zip(process.argv, shown_argv(process), strict=True)
        ),
        variables=tuple(_variable(name, value, process, mine) for name, value in sorted(own.items())),
    )


def _whole(process: PlannedProcess) -> dict[str, EnvValue]:
    return {**process.env, **process.provided}


def _shared(plan: LaunchPlan) -> dict[str, EnvValue]:
    first, *others = (_whole(process) for process in plan.processes)
    if not others:
        return {}
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _told_elsewhere(plan: LaunchPlan, mine: Collection[str]) -> dict[str, EnvValue]:
    """Left for the review: what all processes have and nobody here has set."""
    shared = _shared(plan) or _whole(plan.processes[0])
    return {name: value for name, value in shared.items() if name not in mine}


def _variable(name: str, value: EnvValue, process: PlannedProcess, mine: Collection[str]) -> Variable:
    setter = "Open MPI" if name in process.provided else ""
    if isinstance(value, Reference):
        text = "assigned at launch" if value.kind == "launch" else f"secret {value.name}"
        return Variable(name, text, at_launch=True, is_mine=name in mine, setter=setter)
    devices = [PROVISIONAL_GPU.match(part) for part in value.split(",")]
    indices = [found[1] for found in devices if found]
    if len(indices) < len(devices):
        return Variable(name, value, is_mine=name in mine, setter=setter)
    shown = f"GPU {indices[0]}" if len(indices) == 1 else f"GPU {indices[0]} to {indices[-1]}"
    return Variable(name, f"{shown}, by UUID", at_launch=True, is_mine=name in mine)


def _gpus(process: PlannedProcess) -> tuple[str, ...]:
    """Short labels: the index where the placement is provisional, else the head of the UUID."""
    found = [(gpu, PROVISIONAL_GPU.match(gpu)) for gpu in process.gpus]
    return tuple(f"GPU {match[1]}" if match else gpu[:12] for gpu, match in found)
