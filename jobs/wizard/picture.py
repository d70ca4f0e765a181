"""A LaunchPlan as the wizard draws it: nodes as boxes, processes as squares, and the command of the chosen
rank. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from jobs.wizard.text_values import quoted
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess, Reference
from trainhub_launch.printing import display_argv

# A plan may have 1,024 nodes and 4,096 processes, too many for a page.
MAX_BOXES = 16
MAX_SQUARES = 64
MAX_ROWS = 64
# The format that the planner writes for a GPU that is only chosen when the run is placed.
PROVISIONAL_GPU = re.compile(r"<GPU (\d+) of [^,]*>\Z")


@dataclass(frozen=True)
class Word:
    """One argument of a command. `typed`: the text before references were replaced, "" if it had none."""

    text: str
    typed: str = ""

    @property
    def display(self) -> str:
        """Returns the argument, quoted if its start and end would not be visible otherwise."""
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
class VariableRow:
    """An environment variable. `at_launch`: the value is known only at launch, and `text` describes it.
    `is_mine`: the user set it. `setter`: the program that sets it, "" for TrainHub."""

    name: str
    text: str
    at_launch: bool = False
    is_mine: bool = False
    setter: str = ""


@dataclass(frozen=True)
class PictureRow:
    """A process with its command and the variables to list for it."""

    process: PlannedProcess
    node: str
    gpus: tuple[str, ...]
    words: tuple[Word, ...]
    variables: tuple[VariableRow, ...]


@dataclass(frozen=True)
class Picture:
    boxes: tuple[Box, ...]
    hidden_nodes: int
    node_count: int
    process_count: int
    gpu_count: int
    chosen: PictureRow
    launcher: tuple[Word, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    rows: tuple[PictureRow, ...]
    hidden_rows: int
    shared: tuple[VariableRow, ...]


def draw(plan: LaunchPlan, rank: int = 0, mine: Collection[str] = ()) -> Picture:
    """Returns the picture of a plan. `rank`: the process whose command is shown; the first one if it does not
    exist. `mine`: names of variables that the user set."""
    processes = plan.processes
    chosen = next((process for process in processes if process.rank == rank), processes[0])
    return Picture(
        boxes=tuple(_box(command, chosen) for command in plan.commands[:MAX_BOXES]),
        hidden_nodes=max(0, len(plan.commands) - MAX_BOXES),
        node_count=len(plan.commands),
        process_count=len(processes),
        gpu_count=sum(
            len({gpu for process in command.processes for gpu in process.gpus}) for command in plan.commands
        ),
        chosen=_row(chosen, plan, shared=_repeated_elsewhere(plan, mine), mine=mine),
        launcher=tuple(Word(text) for command in plan.commands for text in command.launcher),
        notes=plan.notes,
    )


def tabulate(plan: LaunchPlan, mine: Collection[str] = ()) -> Table:
    """Returns all processes as a table of rank, node, command and variables. `mine`: names of variables that
    the user set."""
    shared = _shared(plan)
    return Table(
        rows=tuple(_row(process, plan, shared=shared, mine=mine) for process in plan.processes[:MAX_ROWS]),
        hidden_rows=max(0, len(plan.processes) - MAX_ROWS),
        shared=tuple(
            _variable(name, value, plan.processes[0], mine) for name, value in sorted(shared.items())
        ),
    )


def _box(command: NodeCommand, chosen: PlannedProcess) -> Box:
    squares = tuple(
        Square(process.rank, process.role, _gpus(process), process is chosen, process.decides)
        for process in command.processes[:MAX_SQUARES]
    )
    hidden = len(command.processes) - len(squares)
    return Box(command.node, command.address, command.node_rank, squares, hidden)


def _row(
    process: PlannedProcess, plan: LaunchPlan, *, shared: dict[str, EnvValue], mine: Collection[str]
) -> PictureRow:
    own = {name: value for name, value in _whole(process).items() if name not in shared}
    return PictureRow(
        process=process,
        node=next(command.node for command in plan.commands if command.node_rank == process.node_rank),
        gpus=_gpus(process),
        words=tuple(
            Word(display, typed if typed != display else "")
            for typed, display in zip(process.argv, display_argv(process), strict=True)
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


def _repeated_elsewhere(plan: LaunchPlan, mine: Collection[str]) -> dict[str, EnvValue]:
    """Returns the variables that all processes share and the user did not set; only the review lists them."""
    # A single process shares nothing, so `_shared` is empty; all of its variables count as repeated then.
    shared = _shared(plan) or _whole(plan.processes[0])
    return {name: value for name, value in shared.items() if name not in mine}


def _variable(name: str, value: EnvValue, process: PlannedProcess, mine: Collection[str]) -> VariableRow:
    # `provided` holds the variables that mpirun sets itself for each process it starts.
    setter = "Open MPI" if name in process.provided else ""
    if isinstance(value, Reference):
        text = "assigned at launch" if value.kind == "launch" else f"secret {value.name}"
        return VariableRow(name, text, at_launch=True, is_mine=name in mine, setter=setter)
    devices = [PROVISIONAL_GPU.match(part) for part in value.split(",")]
    indices = [matches[1] for matches in devices if matches]
    # Only a value that consists of provisional GPUs alone is replaced, such as CUDA_VISIBLE_DEVICES.
    if len(indices) < len(devices):
        return VariableRow(name, value, is_mine=name in mine, setter=setter)
    label = f"GPU {indices[0]}" if len(indices) == 1 else f"GPU {indices[0]} to {indices[-1]}"
    return VariableRow(name, f"{label}, by UUID", at_launch=True, is_mine=name in mine)


def _gpus(process: PlannedProcess) -> tuple[str, ...]:
    """Returns short labels: `GPU 0` while the placement is provisional, otherwise the start of the UUID."""
    matches = [(gpu, PROVISIONAL_GPU.match(gpu)) for gpu in process.gpus]
    return tuple(f"GPU {match[1]}" if match else gpu[:12] for gpu, match in matches)
