"""Processes of a plan, each with its own variables, as bash: for frameworks that no launcher of their own
starts, such as TensorFlow. The plan is made for nodes whose addresses are variables of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobs.exports.export import command_line
from jobs.exports.shell_words import quote
from trainhub_launch.plan import LaunchPlan, PlannedProcess, Reference
from trainhub_launch.planner import contract_plan
from trainhub_launch.processes import mlflow
from trainhub_launch.processes.environment import DEFAULTS, MASTER_PORT
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import RunSpec

_ADDRESS = re.compile(r"node-(\d+)\.trainhub\.invalid")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
# A beginning that so many letters of all values have in common is written once.
_LONG = 60


def planned_lines(spec: RunSpec, prefix: str) -> list[str]:
    """Returns the lines for any node, which NODE_RANK names. `prefix`: stands before each command. Raises
    SpecError for a spec that cannot be planned."""
    begin, nodes = _planned(spec, prefix)
    if len(nodes) == 1:
        return [*begin, *nodes[0]]
    lines = [*begin, 'case "$NODE_RANK" in']
    for number, node in enumerate(nodes):
        lines += [f"{number})", *(f"    {line}" for line in node), "    ;;"]
    return [*lines, "esac"]


def planned_nodes(spec: RunSpec, prefix: str) -> list[list[str]]:
    """Returns the lines of each node. Raises SpecError for a spec that cannot be planned."""
    begin, nodes = _planned(spec, prefix)
    return [[*begin, *node] for node in nodes]


def _planned(spec: RunSpec, prefix: str) -> tuple[list[str], list[list[str]]]:
    """Returns the lines that all nodes have in common, and those of each."""
    plan = contract_plan(spec, _placement(spec), _ports(spec))
    if len(plan.processes) == 1:
        (process,) = plan.processes
        return [*_exports(_own(process, spec))], [[f"{prefix}{command_line(spec)}"]]
    starts = _beginnings(plan, spec)
    begin = ["start_rank() {", f"    exec {prefix}{command_line(spec)}", "}"]
    begin += [f"{name.lower()}_start={_value(start)}" for name, start in starts.items()]
    if any(_shares_gpus(process, spec) for process in plan.processes):
        everything = ",".join(map(str, range(spec.resources.gpus_per_node)))
        begin.append(f'IFS=, read -r -a gpus <<< "${{{_VISIBLE}:-{everything}}}"')
    begin.append("trap 'kill $(jobs -p) 2> /dev/null || true' EXIT")
    return begin, [list(_node(command.processes, spec, starts)) for command in plan.commands]


def _placement(spec: RunSpec) -> Placement:
    gpus = tuple(map(str, range(spec.resources.gpus_per_node)))
    cores = max(1, int(spec.resources.cpus or 1))
    return Placement(
        tuple(
            PlacedNode(f"node-{number}", f"node-{number}.trainhub.invalid", gpus, 0, cores)
            for number in range(spec.node_count)
        )
    )


def _ports(spec: RunSpec) -> dict[str, range]:
    return {f"node-{number}": range(MASTER_PORT, 2**16) for number in range(spec.node_count)}


def _node(processes: Sequence[PlannedProcess], spec: RunSpec, starts: dict[str, str]) -> Iterator[str]:
    for process in processes:
        yield f"# {process.role}, rank {process.rank}"
        yield "("
        yield from (f"    {line}" for line in _exports(_own(process, spec), starts))
        if _shares_gpus(process, spec):
            numbers = [f"${{gpus[{gpu}]}}" for gpu in process.gpus]
            yield f'    export {_VISIBLE}="{",".join(numbers)}"'
        yield "    start_rank"
        yield ") &"
        if process.decides and not all(other.decides for other in processes):
            yield "decisive=$!"
    if all(process.decides for process in processes):
        yield f"for _ in {' '.join(str(process.rank) for process in processes)}; do wait -n; done"
    elif any(process.decides for process in processes):
        yield 'wait "$decisive"'
    else:
        yield "wait"


def _shares_gpus(process: PlannedProcess, spec: RunSpec) -> bool:
    return not spec.resources.all_gpus and len(process.gpus) < spec.resources.gpus_per_node


def _own(process: PlannedProcess, spec: RunSpec) -> dict[str, str]:
    """Returns the variables that say who a process is, without those that only tune it or belong to the
    hub."""
    omitted = DEFAULTS | set(mlflow.variables(spec)) | set(spec.environment_variables) | {_VISIBLE}
    return {
        name: value
        for name, value in process.env.items()
        if not isinstance(value, Reference) and name not in omitted
    }


def _beginnings(plan: LaunchPlan, spec: RunSpec) -> dict[str, str]:
    """Returns the long text with which all values of a variable begin, by its name."""
    own = [_own(process, spec) for process in plan.processes]
    common = {name: _common_start([env.get(name, "") for env in own]) for name in own[0]}
    # Not in the middle of an address.
    whole = {name: text[: text.rfind('"') + 1] for name, text in common.items()}
    return {name: text for name, text in whole.items() if len(text) > _LONG}


def _common_start(texts: Sequence[str]) -> str:
    # What the first and the last have in common, all between them have, too.
    first, last = min(texts), max(texts)
    same = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(same, len(first))]


def _exports(variables: dict[str, str], starts: dict[str, str] | None = None) -> Iterator[str]:
    for name, value in variables.items():
        start = (starts or {}).get(name, "")
        begin = f'"${{{name.lower()}_start}}"' if start else ""
        yield f"export {name}={begin}{_value(value[len(start) :])}"


def _value(text: str) -> str:
    """Returns a value in bash, with the addresses of nodes as the shell knows them."""
    parts = _ADDRESS.split(text)
    out = [f'"${{nodes[{part}]}}"' if odd % 2 else quote(part) for odd, part in enumerate(parts) if part]
    return "".join(out)
