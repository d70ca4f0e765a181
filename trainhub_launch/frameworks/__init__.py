"""The table of frameworks. A new framework is a folder beside this file, and one item of the list below.

All code that treats frameworks differently uses this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainhub_launch.distribution import Distribution
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks import mpi, pytorch, single, tensorflow
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.json_types import JsonValue
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.spec import RunSpec

FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    # Pages and messages list the frameworks in this order.
    for framework in (single.FRAMEWORK, pytorch.FRAMEWORK, mpi.FRAMEWORK, tensorflow.FRAMEWORK)
}
# The framework of a spec without a distribution.
SINGLE = single.FRAMEWORK.name


def framework_of(spec: RunSpec) -> Framework:
    """Returns the framework of `spec`. Raises SpecError if it is not in the table."""
    return _find(SINGLE if spec.distribution is None else spec.distribution.type)


def demand(spec: RunSpec) -> Demand:
    """Returns the nodes, GPUs per node and process slots per node that `spec` needs."""
    return framework_of(spec).demand(spec)


def read_distribution(fields: Fields) -> Distribution | None:
    """Returns the field `distribution` of a spec, None if it is absent. Raises SpecError that names the wrong
    field."""
    if fields.raw("distribution") is None:
        return None
    part = fields.nested("distribution")
    configuration = _find(part.text("type", required=True)).configuration
    # There is no value for "no distribution": leaving the field out is the only way to request it.
    if configuration is None:
        raise _unknown(SINGLE)
    distribution = configuration.read(part)
    part.finish()
    return distribution


def stored_framework(spec: Mapping[str, Any]) -> str:
    """Returns the name of the framework in the JSON of a stored spec. It may be one that the table no longer
    has."""
    return str((spec.get("distribution") or {}).get("type", SINGLE))


def stored_summary(spec: Mapping[str, JsonValue]) -> str:
    """Returns in a few words how the run of a stored spec is distributed, for example "PyTorch ×4".

    For a framework that the table no longer has, it is only the name."""
    name = stored_framework(spec)
    framework = FRAMEWORKS.get(name)
    if framework is None:
        return name
    if framework.configuration is None:
        return framework.label
    # Without `finish`: a spec that an older version stored may have fields that this version does not know.
    configuration = framework.configuration.read(Fields(spec).nested("distribution"))
    return f"{framework.label} {framework.configuration.summary(configuration)}"


def distribution_types(quote: str = "") -> str:
    """Returns the values that `distribution.type` can have as a list in words: "a, b or c". Each value is
    enclosed in `quote`."""
    configured = [framework.name for framework in FRAMEWORKS.values() if framework.configuration is not None]
    names = [f"{quote}{name}{quote}" for name in configured]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _find(name: str) -> Framework:
    if name not in FRAMEWORKS:
        raise _unknown(name)
    return FRAMEWORKS[name]


def _unknown(name: str) -> SpecError:
    types = distribution_types(quote="'")
    return SpecError("distribution.type", f"{name!r} is not known; use {types}, or leave it out")
