"""Checks `$NAME` in arguments and command: whether every process has the variable, and whether it will be
expanded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches

from trainhub_launch.expand import references as names_in
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import words
from trainhub_launch.plan import BASE_ENVIRONMENT, LaunchPlan
from trainhub_launch.spec import RunSpec

_TOKENS = frozenset({"TRAINHUB_TOKEN", "MLFLOW_TRACKING_TOKEN"})


def reference_findings(
    spec: RunSpec, contract: LaunchPlan, remedy: Callable[[str], str]
) -> Iterator[Finding]:
    """Yields findings about references to environment variables.

    `contract`: the plan with the variables that TrainHub sets, without the user's. `remedy`: returns what to
    use instead of an unknown name, as far as a framework knows, or ""."""
    defined = _defined_variables(contract) | spec.environment_variables.keys()
    for field, word in words(spec):
        for name in names_in(word):
            if name not in defined:
                instead = remedy(name) or _remedy(name, defined)
                yield Finding("error", field, f"${name} will not exist; {instead}")
        # `names_in` skips forms such as `${NAME:-x}`, so a surplus of `${` means that something is not
        # expanded.
        if "${" in word and len(names_in(word)) < word.count("${"):
            yield Finding(
                "warning",
                field,
                "only $NAME and ${NAME} are replaced, without defaults or other shell forms; "
                "the rest is passed on as it is written ($$ is a dollar)",
            )
    for name, variable in spec.environment_variables.items():
        if variable.value is not None and set(names_in(variable.value)) & defined:
            yield Finding(
                "hint",
                f"environment_variables.{name}",
                "values of variables are not expanded; the process gets the dollar "
                "unchanged (arguments are expanded)",
            )


def _defined_variables(plan: LaunchPlan) -> set[str]:
    """Returns the names of the variables that every process has."""
    each = [process.env.keys() | process.provided.keys() for process in plan.processes]
    # A variable counts only if all processes have it, because all of them get the same arguments.
    return set.intersection(*each) | set(BASE_ENVIRONMENT)


def _remedy(name: str, defined: set[str]) -> str:
    near = get_close_matches(name, sorted(defined), n=2)
    if near:
        return f"did you mean {' or '.join(f'${match}' for match in near)}?"
    # Every account of the machine can read the arguments of a process, so tokens are not suggested.
    there = ", ".join(sorted(defined - {*BASE_ENVIRONMENT, *_TOKENS}))
    return f"add it to the environment variables, write $$ for a dollar, or use one of {there}"
