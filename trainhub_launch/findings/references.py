"""`$NAME` in arguments and command: does every process have it, and does it mean what it seems to?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches

from trainhub_launch.expand import references as names_in
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import words
from trainhub_launch.plan import BASE_ENVIRONMENT, LaunchPlan
from trainhub_launch.spec import RunSpec

_TOKENS = frozenset({"TRAINHUB_TOKEN", "MLFLOW_TRACKING_TOKEN"})


def references(spec: RunSpec, contract: LaunchPlan, remedy: Callable[[str], str]) -> Iterator[Finding]:
    """`contract`: the plan with what TrainHub alone sets. `remedy`: what frameworks say of a name that will
    not exist, or ""."""
    known = _known(contract) | spec.environment_variables.keys()
    for field, word in words(spec):
        for name in names_in(word):
            if name not in known:
                instead = remedy(name) or _remedy(name, known)
                yield Finding("error", field, f"${name} will not exist; {instead}")
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


def _remedy(name: str, known: set[str]) -> str:
    near = get_close_matches(name, sorted(known), n=2)
    if near:
        return f"did you mean {' or '.join(f'${match}' for match in near)}?"
    # Arguments can be read by everybody on the machine, so the token is not among what we recommend there.
    there = ", ".join(sorted(known - {*BASE_ENVIRONMENT, *_TOKENS}))
    return f"add it to the environment variables, write $$ for a dollar, or use one of {there}"
