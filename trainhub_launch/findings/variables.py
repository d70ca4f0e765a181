"""Checks the user's environment variables: names that TrainHub reserves, and secrets that are given as plain
text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from trainhub_launch.expand import references
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import options, words
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.processes import mlflow
from trainhub_launch.processes.environment import is_reserved, reserved_sentence
from trainhub_launch.spec import RunSpec

_SECRET_NAME = re.compile(
    r"(^|_)(PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|ACCOUNT_KEY|PRIVATE_KEY|CREDENTIALS?"
    r"|CONNECTION_STRING|SAS)(_|$)"
)
# These suffixes denote a place or a quantity, as in SECRET_PATH or TOKEN_COUNT.
_NOT_SECRET_NAME = re.compile(r"_(PATH|FILE|DIR|NAME|ID|COUNT|LENGTH|PARALLELISM)$")
# `--token` counts only alone or with these prefixes: language models have options such as --pad-token.
_SECRET_OPTION = re.compile(
    r"--(.*-)?(password|passwd|secret|api-?key|access-key|account-key)$"
    r"|--((hf|hub|api|auth|access|wandb)-)?token$"
)
# Keys of AWS, GitHub, Hugging Face, OpenAI and Slack, JSON web tokens, private keys in PEM, passwords in
# URLs, and signatures of Azure storage addresses.
_SECRET_VALUE = re.compile(
    r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bhf_\w{20,}|\bsk-[\w-]{20,}"
    r"|\bxox[abp]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@|[?&]sig=[\w%+/]{16,}"
)
_ELSEWHERE = (
    "what the script logs by MLflow goes to that server, which gets neither this run's token nor its id; "
    "leave it out to see "
    "curves here"
)
_REMEDY = (
    "it would be kept and shown with the run; store it under Settings, Secrets, and give the name of the "
    "secret instead"
)


def variable_findings(
    spec: RunSpec, contract: LaunchPlan | None, overridable: Collection[str]
) -> Iterator[Finding]:
    """Yields findings about the user's variables and about secrets among the arguments.

    `contract`: the plan with the variables that TrainHub sets; None if there is no plan. `overridable`: names
    that the spec's framework permits the user to set."""
    if contract is not None:
        yield from _overridden(spec, contract, overridable)
    for name, variable in spec.environment_variables.items():
        if variable.value and (_is_secret_name(name) or _SECRET_VALUE.search(variable.value)):
            yield Finding("hint", f"environment_variables.{name}", f"looks like a secret: {_REMEDY}")
    for option in options(spec):
        if (
            _SECRET_OPTION.match(option.name)
            and option.value
            and "$" not in option.value
            and option.number is None
        ):
            yield Finding("hint", option.field, f"{option.name} looks like a secret: {_REMEDY}")
    for field, word in words(spec):
        if _SECRET_VALUE.search(word):
            yield Finding("hint", field, f"looks like a secret: {_REMEDY}")
        for name in references(word):
            if name in spec.environment_variables and spec.environment_variables[name].secret is not None:
                yield Finding("error", field, _in_process_list(name))


def _in_process_list(name: str) -> str:
    return (
        f"${name} is a secret, and arguments can be read by everybody on the node; let the script read the "
        f"variable {name} itself"
    )


def _overridden(spec: RunSpec, contract: LaunchPlan, overridable: Collection[str]) -> Iterator[Finding]:
    ours = {name: value for process in contract.processes for name, value in process.env.items()}
    provided = {name: value for process in contract.processes for name, value in process.provided.items()}
    for name in spec.environment_variables:
        if name == mlflow.SERVER:
            yield Finding("hint", f"environment_variables.{name}", _ELSEWHERE)
        elif is_reserved(name, ours, provided, overridable):
            yield Finding("error", f"environment_variables.{name}", reserved_sentence(name))
        # The node puts its own entry in front of the user's PYTHONPATH, so nothing is replaced there.
        elif name in ours and name != "PYTHONPATH":
            yield Finding(
                "hint", f"environment_variables.{name}", "replaces the value that TrainHub would set"
            )


def _is_secret_name(name: str) -> bool:
    upper = name.upper()
    # Names with TRAINHUB_ are refused by `_overridden` already.
    return (
        bool(_SECRET_NAME.search(upper))
        and not _NOT_SECRET_NAME.search(upper)
        and not upper.startswith("TRAINHUB_")
    )
