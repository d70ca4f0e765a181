"""What an export says of each field that its format cannot hold, or holds in another way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import describe_input, describe_outputs
from jobs.exports.process_shape import process_shape
from trainhub_launch.scheduler.sizes import bytes_text
from trainhub_launch.spec import (
    Checkpoints,
    EnvironmentRef,
    ExampleSource,
    GitSource,
    Limits,
    RunSpec,
)

_INTERFACE = "GLOO_SOCKET_IFNAME"


def field_notes(spec: RunSpec, fields: Collection[str]) -> tuple[Note, ...]:
    """Returns a note for each field of the spec that is set and not among `fields`, which the format
    holds."""
    notes = [
        Note(field, Outcome.NONE, message)
        for field, describe in _FIELDS.items()
        if field not in fields and (message := describe(spec))
    ]
    if "inputs" not in fields:
        notes += _inputs(spec)
    if "environment_variables" not in fields:
        notes += secret_notes(spec)
    return tuple(notes)


def secret_notes(spec: RunSpec) -> Iterator[Note]:
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield Note(
                f"environment_variables.{name}",
                Outcome.CHANGED,
                f"the value of the secret {variable.secret!r} is not in the file: set {name} first",
            )


def change_note(field: str, message: str) -> Note:
    return Note(field, Outcome.CHANGED, message)


def _inputs(spec: RunSpec) -> Iterator[Note]:
    for name, data_input in spec.inputs.items():
        yield change_note(
            f"inputs.{name}",
            f"nothing brings {describe_input(data_input)} to the node: set TRAINHUB_INPUT_{name.upper()} to "
            "the folder in which it lies there",
        )


def _source(spec: RunSpec) -> str:
    source = spec.source
    if isinstance(source, GitSource):
        commit = source.commit or source.ref
        return f"the code is not in the file: clone {source.url}" + (
            f" and check out {commit}" if commit else ""
        )
    if isinstance(source, ExampleSource):
        return f"the code is not in the file: it is the example {source.name!r} of TrainHub"
    return "the code is not in the file: lay the file into the folder with the code"


def _environment(spec: RunSpec) -> str:
    if spec.environment == EnvironmentRef():
        return ""
    version = f" {spec.environment.version}" if spec.environment.version else ""
    return f"{spec.environment.name}{version} is not in the file: the nodes need its packages"


def _checkpoint(spec: RunSpec) -> str:
    checkpoint = spec.checkpoint
    if checkpoint.resume_from:
        return (
            f"the checkpoint of run {checkpoint.resume_from} is not in the file: lay it into "
            f"{checkpoint.path} before you start"
        )
    if checkpoint == Checkpoints(path=checkpoint.path):
        return ""
    return f"checkpoints stay in {checkpoint.path} on the nodes: nothing keeps the newest of them elsewhere"


def _retries(spec: RunSpec) -> str:
    return (
        f"nothing starts it again, up to {spec.limits.retries} times, if it fails"
        if spec.limits.retries
        else ""
    )


def _grace(spec: RunSpec) -> str:
    if spec.limits.grace_s == Limits().grace_s:
        return ""
    return f"{spec.limits.grace_s} s between the request to stop and the end are not in the file"


def _network(spec: RunSpec) -> str:
    if spec.node_count == 1 or not process_shape(spec).starter or _INTERFACE in spec.environment_variables:
        return ""
    return (
        f"a hub sets {_INTERFACE} and NCCL_SOCKET_IFNAME to the interface of each node: set them where "
        "ranks do not reach each other"
    )


def _tags(spec: RunSpec) -> str:
    return f"{len(spec.tags)} of them are not in the file" if spec.tags else ""


# Field of a spec -> what to say if it is set, "" if it is not.
_FIELDS: dict[str, Callable[[RunSpec], str]] = {
    "source": _source,
    "experiment": lambda spec: (
        f"{spec.experiment!r} has no place in the file" if spec.experiment != "default" else ""
    ),
    "display_name": lambda spec: (
        f"{spec.display_name!r} has no place in the file" if spec.display_name else ""
    ),
    "distribution": _network,
    "environment": _environment,
    "resources.cluster": lambda spec: (
        f"{spec.resources.cluster!r} is a cluster of TrainHub: choose where it runs yourself"
        if spec.resources.cluster
        else ""
    ),
    "resources.gpus_per_node": lambda spec: (
        "all GPUs of each node: give it nodes of its own"
        if spec.resources.all_gpus
        else f"{spec.resources.gpus_per_node} GPU(s): choose nodes that have them"
        if spec.resources.gpus_per_node
        else ""
    ),
    "resources.memory": lambda spec: (
        f"{bytes_text(spec.resources.memory)} for each node are not in the file"
        if spec.resources.memory
        else ""
    ),
    "resources.cpus": lambda spec: (
        f"{spec.resources.cpus:g} cores for each node are not in the file" if spec.resources.cpus else ""
    ),
    "resources.disk": lambda spec: (
        f"{bytes_text(spec.resources.disk)} for each node are not in the file" if spec.resources.disk else ""
    ),
    "limits.timeout_s": lambda spec: (
        f"{spec.limits.timeout_s} s are not in the file: nothing ends it" if spec.limits.timeout_s else ""
    ),
    "limits.grace_s": _grace,
    "limits.retries": _retries,
    "checkpoint": _checkpoint,
    "outputs": lambda spec: (
        f"outputs/ stays on the nodes: nothing brings it to {describe_outputs(spec.outputs)}"
        if spec.outputs
        else ""
    ),
    "priority": lambda spec: f"{spec.priority} has no place in the file" if spec.priority else "",
    "tags": _tags,
}
