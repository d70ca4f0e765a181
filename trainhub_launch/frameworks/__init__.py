"""The table of frameworks. A new framework is a folder beside this file, and one item of the list below.

Everything that treats frameworks differently asks this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainhub_launch.distribution import Distribution
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks import mpi, pytorch, single, tensorflow
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.spec import RunSpec

FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    # In this order wherever people see several.
    for framework in (single.FRAMEWORK, pytorch.FRAMEWORK, mpi.FRAMEWORK, tensorflow.FRAMEWORK)
}
SINGLE = single.FRAMEWORK.name
"""The framework of a spec without a distribution."""


def framework_of(spec: RunSpec) -> Framework:
    """Raises SpecError for a spec of a framework that is not in the table."""
    return _find(SINGLE if spec.distribution is None else spec.distribution.type)


def demand(spec: RunSpec) -> Demand:
    """Nodes, GPUs per node and process slots per node that `spec` needs."""
    return framework_of(spec).demand(spec)


def read_distribution(fields: Fields) -> Distribution | None:
    """The field `distribution` of a spec; raises SpecError naming what is wrong in it."""
    if fields.raw("distribution") is None:
        return None
    part = fields.nested("distribution")
    configuration = _find(part.text("type", required=True)).configuration
    if configuration is None:
        raise _unknown(SINGLE)
    distribution = configuration.read(part)
    part.finish()
    return distribution


def stored_framework(spec: Mapping[str, Any]) -> str:
    """The name of the framework in the JSON of a stored spec. The table may no longer have it."""
    return str((spec.get("distribution") or {}).get("type", SINGLE))


def stored_summary(spec: Mapping[str, Any]) -> str:
    """How the run of a stored spec is distributed, in a word and its counts.

    For a framework that the table no longer has, only its name.
    """
    name = stored_framework(spec)
    framework = FRAMEWORKS.get(name)
    if framework is None:
        return name
    if framework.configuration is None:
        return framework.label
    configuration = framework.configuration.read(Fields(spec).nested("distribution"))
    return f"{framework.label} {framework.configuration.summary(configuration)}"


def distribution_types(quote: str = "") -> str:
    """The values that `distribution.type` can have, as a sentence lists them: "a, b or c"."""
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
