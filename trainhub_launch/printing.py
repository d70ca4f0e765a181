"""Prints a plan as text, for the preview and for the golden files of the tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess


def show(plan: LaunchPlan) -> str:
    """Returns a plan as text: nodes, then processes. Variables that all processes share are printed once.

    Words are quoted as for a shell, to show where each begins and ends, although no shell reads them.
    References are printed as `<assigned at launch>` and `<secret NAME>`."""
    return "\n".join(_lines(plan)) + "\n"


def display_argv(process: PlannedProcess) -> tuple[str, ...]:
    """Returns `process.argv` with every reference replaced that has a value or a name in the plan."""
    values = {name: str(value) for name, value in process.env.items()} | dict(process.provided)
    return tuple(_substituted(word, values) for word in process.argv)


def _substituted(word: str, values: Mapping[str, str]) -> str:
    try:
        return expand(word, values)
    except UnknownVariable:
        # HOME and the rest of BASE_ENVIRONMENT are only known on the node, so the word stays as it was
        # written.
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
    if display_argv(process) != process.argv:
        yield f"    runs    {_line(display_argv(process))}"
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
    """Returns the text quoted as for a shell, with control characters escaped, which a terminal would
    obey."""
    # A newline or an escape sequence in an argument could otherwise imitate further lines of the plan.
    if text.isprintable():
        return shlex.quote(text)
    printable = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    return f"$'{printable}'"


def _shared(processes: tuple[PlannedProcess, ...]) -> dict[str, EnvValue]:
    # A plan always has a process: every framework starts at least one on each node.
    first, *others = processes
    return {
        name: value
        for name, value in first.env.items()
        if all(other.env.get(name) == value for other in others)
    }


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
