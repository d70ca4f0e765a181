"""Reads a RunSpec from JSON that a person or a client wrote. Every error names its field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainhub_launch.data.input_reader import read_inputs
from trainhub_launch.data.outputs import LONGEST_PATH, check_place, read_outputs
from trainhub_launch.distribution import MAX_NODES
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields, check_text
from trainhub_launch.frameworks import distribution_types, read_distribution
from trainhub_launch.scheduler.sizes import bytes_text, parse_bytes
from trainhub_launch.spec import (
    ALL_GPUS,
    EXPERIMENT_NAME,
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    VARIABLE_NAME,
    VERSION,
    Checkpoints,
    EnvironmentRef,
    ExampleSource,
    GitSource,
    Limits,
    Resources,
    RunSpec,
    SnapshotSource,
    Source,
    Variable,
)

LEAST_MEMORY, MOST_MEMORY = 64 * 2**20, 64 * 2**40
LEAST_DISK, MOST_DISK = 64 * 2**20, 2**50
LEAST_CPUS, MOST_CPUS = 0.1, 4096
MOST_GPUS = 64
MOST_CHECKPOINTS, MOST_PATH_LENGTH = 100, 200
RUN_ID = re.compile(r"[0-9a-f]{32}\Z")
MOST_URL_LENGTH, MOST_REF_LENGTH = 1000, 200


def read_spec(data: Any) -> RunSpec:
    """Returns the spec in `data`. Raises SpecError that names the wrong field."""
    fields = Fields(data)
    fields.integer("version", VERSION, least=1, most=VERSION)
    experiment = fields.text("experiment", "default", required=True)
    if not EXPERIMENT_NAME.match(experiment):
        raise SpecError(
            "experiment", "use letters, digits, space, '.', '_' and '-', starting with a letter or digit"
        )
    spec = RunSpec(
        source=_read_source(fields),
        experiment=experiment,
        display_name=fields.text("display_name", longest=200),
        script=fields.text("script").strip(),
        arguments=fields.strings("arguments"),
        command=fields.strings("command"),
        distribution=read_distribution(fields),
        resources=_read_resources(fields.nested("resources")),
        environment=_read_environment(fields.nested("environment")),
        environment_variables=_read_variables(fields),
        limits=_read_limits(fields.nested("limits")),
        checkpoint=_read_checkpoint(fields.nested("checkpoint")),
        inputs=read_inputs(fields),
        outputs=read_outputs(fields),
        priority=fields.integer("priority", 0, least=LOWEST_PRIORITY, most=HIGHEST_PRIORITY),
        tags=_read_tags(fields),
    )
    fields.finish()
    # Only after `finish`: a misspelled field is the more useful message than the contradiction that it
    # causes.
    _check_whole(spec)
    return spec


def _read_source(fields: Fields) -> Source:
    source = fields.nested("source")
    kind = source.text("type", required=True)
    out: Source
    if kind == "snapshot":
        out = SnapshotSource(id=source.text("id", required=True))
    elif kind == "example":
        out = ExampleSource(name=source.text("name", required=True))
    elif kind == "git":
        out = read_git_source(source)
    else:
        raise SpecError(
            "source.type", f"{kind!r} is not a kind of source; use 'snapshot', 'git' or 'example'"
        )
    source.finish()
    return out


def read_git_source(source: Fields) -> GitSource:
    """Returns the source that the fields of a JSON object describe. Raises SpecError."""
    out = GitSource(
        url=source.text("url", required=True, longest=MOST_URL_LENGTH).strip(),
        ref=source.text("ref", longest=MOST_REF_LENGTH).strip(),
        path=source.text("path", longest=MOST_URL_LENGTH).strip().strip("/"),
        commit=source.text("commit", longest=MOST_REF_LENGTH),
        id=source.text("id", longest=MOST_REF_LENGTH),
    )
    if bool(out.commit) != bool(out.id):
        missing, given = ("id", "commit") if out.commit else ("commit", "id")
        raise SpecError(
            f"source.{given}",
            f"stands without {missing}: the hub sets both; to run a certain commit, name it as ref",
        )
    return out


def _read_resources(part: Fields) -> Resources:
    gpus = part.raw("gpus_per_node", 0)
    if isinstance(gpus, str) and gpus != ALL_GPUS:
        raise SpecError(
            part.path("gpus_per_node"),
            f'{gpus!r} is no number of GPUs; give one from 0 to {MOST_GPUS}, or "{ALL_GPUS}" for all GPUs of '
            "each node",
        )
    out = Resources(
        cluster=part.text("cluster").strip(),
        node_count=part.optional_integer("node_count", least=1, most=MAX_NODES),
        gpus_per_node=0 if gpus == ALL_GPUS else part.integer("gpus_per_node", 0, least=0, most=MOST_GPUS),
        all_gpus=gpus == ALL_GPUS,
        memory=_read_size(part, "memory", LEAST_MEMORY, MOST_MEMORY),
        cpus=_read_cpus(part),
        disk=_read_size(part, "disk", LEAST_DISK, MOST_DISK),
    )
    part.finish()
    return out


def _read_size(part: Fields, name: str, least: int, most: int) -> int | None:
    value = part.raw(name)
    if value is None or value == "":
        return None
    try:
        size = parse_bytes(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else 0
    except ValueError:
        size = 0
    if not least <= size <= most:
        raise SpecError(
            part.path(name),
            f"must be a size for each node, like 64GiB or a number of bytes, from {bytes_text(least)} "
            f"to {bytes_text(most)}",
        )
    return size


def _read_cpus(part: Fields) -> float | None:
    value = part.raw("cpus")
    if value is None:
        return None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if not LEAST_CPUS <= number <= MOST_CPUS:
        raise SpecError(
            part.path("cpus"),
            f"must be a number of CPU cores for each node, from {LEAST_CPUS} to {MOST_CPUS}",
        )
    return float(number)


def _read_environment(part: Fields) -> EnvironmentRef:
    out = EnvironmentRef(name=part.text("name", "system", required=True), version=part.text("version"))
    part.finish()
    return out


def _read_variables(fields: Fields) -> dict[str, Variable]:
    raw = fields.raw("environment_variables", {})
    if not isinstance(raw, Mapping):
        raise SpecError("environment_variables", "must be a JSON object of NAME: value")
    out: dict[str, Variable] = {}
    for name, value in raw.items():
        path = f"environment_variables.{name}"
        if not isinstance(name, str) or not VARIABLE_NAME.match(name):
            raise SpecError(
                path, "is not a variable name; use letters, digits and '_', not starting with a digit"
            )
        if isinstance(value, Mapping):
            part = Fields(value, path)
            out[name] = Variable(secret=part.text("secret", required=True))
            part.finish()
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            check_text(path, str(value))
            out[name] = Variable(value=str(value))
        else:
            raise SpecError(path, 'must be a string, or {"secret": "its name"}')
    return out


def _read_limits(part: Fields) -> Limits:
    out = Limits(
        timeout_s=part.optional_integer("timeout_s", least=1, most=366 * 86400),
        grace_s=part.integer("grace_s", 10, least=0, most=3600),
        retries=part.integer("retries", 0, least=0, most=100),
    )
    part.finish()
    return out


def _read_checkpoint(part: Fields) -> Checkpoints:
    path = part.text("path", Checkpoints().path, longest=MOST_PATH_LENGTH).strip().rstrip("/")
    names = path.split("/")
    if any(name in ("", ".", "..") or not name.isprintable() for name in names):
        raise SpecError(
            part.path("path"),
            f"{path!r} is not a folder below the working folder; name one such as 'checkpoints', "
            "without '..' and without a slash at its beginning",
        )
    resume_from = part.text("resume_from")
    if resume_from and not RUN_ID.match(resume_from):
        raise SpecError(part.path("resume_from"), "must be the id of a run, 32 hexadecimal digits")
    out = Checkpoints(
        keep=part.integer("keep", Checkpoints().keep, least=1, most=MOST_CHECKPOINTS),
        path=path,
        resume_from=resume_from,
        number=part.optional_integer("number", least=1, most=2**31 - 1),
        datastore=part.text("datastore").strip(),
        datastore_path=part.text("datastore_path", longest=LONGEST_PATH).strip("/"),
    )
    part.finish()
    check_place(part, out.datastore, out.datastore_path, "datastore_path")
    if out.number is not None and not out.resume_from:
        raise SpecError(part.path("number"), "stands without resume_from, the run whose checkpoint is meant")
    return out


def _read_tags(fields: Fields) -> dict[str, str]:
    raw = fields.raw("tags", {})
    if not isinstance(raw, Mapping) or not all(
        isinstance(k, str) and isinstance(v, str) for k, v in raw.items()
    ):
        raise SpecError("tags", "must be a JSON object of strings")
    for name, value in raw.items():
        # Tags become rows of the database, and PostgreSQL accepts no NUL in a text.
        check_text(f"tags.{name}", name + value)
    return dict(raw)


def _check_whole(spec: RunSpec) -> None:
    """Raises SpecError if fields contradict each other, whatever the placement is."""
    if spec.command and (spec.script or spec.arguments):
        raise SpecError("command", "give either a script with arguments, or a command, not both")
    if not spec.command and not spec.script:
        raise SpecError("script", "name the script to run (or give a command)")
    if spec.distribution is not None:
        spec.distribution.check(spec.resources.node_count)
    elif (spec.resources.node_count or 1) > 1:
        raise SpecError(
            "resources.node_count", f"a run on several nodes needs a distribution ({distribution_types()})"
        )
