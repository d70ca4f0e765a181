"""The printed form of a plan: what the preview shows and the golden files hold."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess


def show(plan: LaunchPlan) -> str:
    """A plan for reading: nodes, then processes, with what all processes share printed once.

    Words are quoted as a shell would need them, to show where each begins and ends; no shell ever
    reads them. References are printed as `<assigned at launch>` and `<secret NAME>`.
    """
    return "\n".join(_lines(plan)) + "\n"


def shown_argv(process: PlannedProcess) -> tuple[str, ...]:
    """`process.argv` with every reference replaced whose value is known, or has a name to show."""
    known = {name: str(value) for name, value in process.env.items()} | dict(process.provided)
    return tuple(_shown(word, known) for word in process.argv)


def _shown(word: str, known: Mapping[str, str]) -> str:
    try:
        return expand(word, known)
    except UnknownVariable:
        # HOME and its like are known on the node alone: the word stays as it was written.
        return word


def _lines(plan: LaunchPlan) -> Iterator[str]:
    processes, nodes = len(plan.processes), len(plan.commands)
    yield f"{plan.framework}: {_count(processes, 'process', 'processes')} on {_count(nodes, 'node', 'nodes')}"
    for name, port in sorted(plan.ports.items()):
        yield f"port {port}  {name}"
    for note in plan.notes:
        yield f"note: {note}"
    shared = _shared(plan.processes)
    yield ""
    yield "environment of every process"
    yield from _environment(shared, "  ")
    for command in plan.commands:
        yield ""
        yield from _node(command, shared)


def _node(command: NodeCommand, shared: Mapping[str, EnvValue]) -> Iterator[str]:
    yield f"node {command.node_rank}  {command.node}  {command.address}"
    if command.launcher:
        yield f"  starts    {_line(command.launcher)}"
    elif command.launcher_env:
        yield "  starts    Open MPI's daemon, when mpirun asks for it"
    yield from _environment(command.launcher_env, "    ")
    for process in command.processes:
        yield from _process(process, shared)


def _process(process: PlannedProcess, shared: Mapping[str, EnvValue]) -> Iterator[str]:
    serves = "" if process.decides else "  (serves until the run ends)"
    yield f"  rank {process.rank}  {process.role}, {process.local_rank} on its node{serves}"
    yield f"    log     {process.log_name}"
    yield f"    GPUs    {', '.join(process.gpus) or 'none'}"
    yield f"    argv    {_line(process.argv)}"
    if shown_argv(process) != process.argv:
        yield f"    runs    {_line(shown_argv(process))}"
    yield from _environment(
        {name: value for name, value in process.env.items() if name not in shared}, "    "
    )
    for name, value in sorted(process.provided.items()):
        yield f"    {name}={_word(value)}  (set by Open MPI)"


def _environment(env: Mapping[str, EnvValue], indent: str) -> Iterator[str]:
    for name, value in sorted(env.items()):
        yield f"{indent}{name}={_word(value) if isinstance(value, str) else value}"


def _line(words: tuple[str, ...]) -> str:
    return " ".join(_word(word) for word in words)


def _word(text: str) -> str:
    """Quoted as a shell would need it; what a terminal would obey instead of show is spelled out."""
    if text.isprintable():
        return shlex.quote(text)
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return f"$'{shown}'"


def _shared(processes: tuple[PlannedProcess, ...]) -> dict[str, EnvValue]:
    first, *others = processes
    return {
        name: value
        for name, value in first.env.items()
        if all(other.env.get(name) == value for other in others)
    }


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
