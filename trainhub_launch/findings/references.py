"""`$NAME` in arguments and command: does every process have it, and does it mean what it seems to?"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trainhub_launch.expand import references as names_in
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import words
from trainhub_launch.plan import BASE_ENVIRONMENT, LaunchPlan
from trainhub_launch.spec import MpiConfiguration, PyTorchConfiguration, RunSpec

_PER_PROCESS = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_OF_PYTORCH = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}
)
_OPEN_MPI = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}
_TOKENS = frozenset({"TRAINHUB_TOKEN", "MLFLOW_TRACKING_TOKEN"})
_PYTORCH = {theirs: ours for ours, theirs in _OPEN_MPI.items()} | {"OMPI_COMM_WORLD_NODE_RANK": "NODE_RANK"}


def references(spec: RunSpec, plan: LaunchPlan) -> Iterator[Finding]:
    known = _known(plan) | spec.environment_variables.keys()
    for field, word in words(spec):
        for name in names_in(word):
            if name == "OMPI_COMM_WORLD_NODE_RANK" and name in known:
                yield Finding("warning", field, _not_the_node_rank(spec))
            elif name not in known:
                yield Finding("error", field, f"${name} will not exist; {_remedy(spec, name, known)}")
        if "${" in word and len(names_in(word)) < word.count("${"):
            yield Finding(
                "warning",
                field,
                "only $NAME and ${NAME} are replaced, without defaults or other shell forms; "
                "the rest is passed on as it is written ($$ is a dollar)",
            )
    for name, variable in spec.environment_variables.items():
        if variable.value is not None and set(names_in(variable.value)) & known:
            yield Finding(
                "hint",
                f"environment_variables.{name}",
                "values of variables are not expanded; the process gets the dollar as "
                "it stands (arguments are expanded)",
            )


def _known(plan: LaunchPlan) -> set[str]:
    """Names that every process has."""
    each = [process.env.keys() | process.provided.keys() for process in plan.processes]
    return set.intersection(*each) | set(BASE_ENVIRONMENT)


def _not_the_node_rank(spec: RunSpec) -> str:
    per_node = (
        spec.distribution.process_count_per_node if isinstance(spec.distribution, MpiConfiguration) else 1
    )
    use = (
        "use $OMPI_COMM_WORLD_RANK"
        if per_node == 1
        else "give process_count_per_node 1 and use $OMPI_COMM_WORLD_RANK"
    )
    return (
        "OMPI_COMM_WORLD_NODE_RANK is not the node's rank: it counts processes on one node; as "
        f"NODE_RANK for a launcher {use}"
    )


def _remedy(spec: RunSpec, name: str, known: set[str]) -> str:
    distribution = spec.distribution
    if isinstance(distribution, PyTorchConfiguration):
        if name in _PER_PROCESS:
            return (
                "it is set where TrainHub starts every process: give process_count, or let your "
                "launcher set it"
            )
        if name in _PYTORCH:
            return f"in a PyTorch run it is ${_PYTORCH[name]}"
    if isinstance(distribution, MpiConfiguration):
        if name == "NODE_RANK":
            return "in an MPI run with process_count_per_node 1 it is $OMPI_COMM_WORLD_RANK"
        if name in _OPEN_MPI:
            return f"in an MPI run it is ${_OPEN_MPI[name]}"
    if name in _OF_PYTORCH:
        return "choose the PyTorch distribution, which sets it"
    if name.startswith("OMPI_"):
        return "choose the MPI distribution, under which Open MPI sets it"
    near = get_close_matches(name, sorted(known), n=2)
    if near:
        return f"did you mean {' or '.join(f'${match}' for match in near)}?"
    # Arguments can be read by everybody on the machine, so the token is not among what we recommend there.
    there = ", ".join(sorted(known - {*BASE_ENVIRONMENT, *_TOKENS}))
    return f"add it to the environment variables, write $$ for a dollar, or use one of {there}"
