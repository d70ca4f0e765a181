"""The options of `submit` and `clone` that change a spec."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, TypeVar

import click

from trainhub_sdk.errors import TrainHubError
from trainhub_sdk.spec import input_from_text, named_version
from trainhub_sdk.spec_fields import check_fields, set_field

F = TypeVar("F", bound=Callable[..., Any])
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?\Z")


def _gpu_count(context: click.Context, option: click.Parameter, text: str | None) -> str:
    """Returns the text if it is a number of GPUs or `all`; "" if the option is absent."""
    if text is None or text == "all" or text.isdecimal():
        return text or ""
    raise click.BadParameter(f"{text!r} is no number of GPUs: give 0 or more, or all.", context, option)


_OPTIONS = (
    click.option("--name", default="", help="How the run is called."),
    click.option("--experiment", "-x", default="", help="By default the experiment `default`."),
    click.option("--cluster", default="", help="By default the hub chooses."),
    click.option("--gpus", metavar="COUNT|all", callback=_gpu_count, help="GPUs on each node, or all."),
    click.option("--nodes", type=click.IntRange(1), help="How many nodes."),
    click.option("--env", "environment", default="", metavar="NAME[@VERSION]", help="The environment."),
    click.option(
        "--input", "inputs", multiple=True, metavar="NAME=DATASET[@VERSION]", help="Data of the run."
    ),
    click.option("-e", "variables", multiple=True, metavar="NAME[=VALUE]", help="An environment variable."),
    click.option(
        "--secret", "secrets", multiple=True, metavar="NAME[=SECRET]", help="A secret, as a variable."
    ),
    click.option("--tag", "tags", multiple=True, metavar="KEY[=VALUE]", help="A tag."),
    click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help="Any field of the spec."),
)


class SpecOptions(NamedTuple):
    name: str
    experiment: str
    cluster: str
    gpus: str
    nodes: int | None
    environment: str
    inputs: Sequence[str]
    variables: Sequence[str]
    secrets: Sequence[str]
    tags: Sequence[str]
    assignments: Sequence[str]


def spec_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def apply_options(spec: dict[str, Any], options: SpecOptions) -> None:
    """Changes the spec as the options say, --set last. Raises TrainHubError."""
    for field, text in (("display_name", options.name), ("experiment", options.experiment)):
        if text:
            spec[field] = text
    if options.cluster:
        set_field(spec, f"resources.cluster={options.cluster}")
    if options.gpus:
        set_field(spec, f"resources.gpus_per_node={options.gpus}")
    if options.nodes is not None:
        set_field(spec, f"resources.node_count={options.nodes}")
        if "node_count" in (spec.get("distribution") or {}):
            set_field(spec, f"distribution.node_count={options.nodes}")
    if options.environment:
        spec["environment"] = named_version(options.environment)
    for option in options.inputs:
        name, value = _pair("--input", option, "NAME=DATASET")
        spec.setdefault("inputs", {})[name] = input_from_text(value)
    variables = spec.setdefault("environment_variables", {})
    variables.update(_variable(option) for option in options.variables)
    variables.update((name, {"secret": value or name}) for name, _, value in map(_parts, options.secrets))
    spec.setdefault("tags", {}).update((key, value) for key, _, value in map(_parts, options.tags))
    for assignment in options.assignments:
        set_field(spec, assignment)
    check_fields(spec)


def words_to_spec(words: Sequence[str]) -> dict[str, Any]:
    """Returns the fields for a command line: `python train.py --epochs 3` is a script with arguments, so that
    the hub can start it in each process; anything else a command."""
    if len(words) >= 2 and _PYTHON.match(words[0]) and words[1].endswith(".py") and words[1][0] != "-":
        script = os.path.normpath(words[1]).replace(os.sep, "/")
        return {"script": script, "arguments": list(words[2:])}
    return {"command": list(words)}


def _parts(text: str) -> tuple[str, str, str]:
    return text.partition("=")


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise TrainHubError(f"{option} {text}: write it as {form}.")
    return name, value


def _variable(text: str) -> tuple[str, str]:
    """Returns name and value; a name alone takes its value from this shell."""
    name, separator, value = text.partition("=")
    if not separator:
        if name not in os.environ:
            raise TrainHubError(f"-e {name}: it has no value here; write it as {name}=VALUE.")
        value = os.environ[name]
    return name, value
