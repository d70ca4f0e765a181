"""How a run is distributed over processes: what the configurations of all frameworks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from trainhub_launch.errors import SpecError

# The largest plan that a hub can make, store and show.
MAX_PROCESSES = 4096
MAX_NODES = 1024


class Distribution(ABC):
    """The configuration of one framework: a frozen dataclass in the folder of that framework.

    Its fields are the fields of the JSON, in the same order. `type` is the name of the framework."""

    type: str
    nodes_field: ClassVar[str] = "distribution.node_count"
    """Where a spec says on how many nodes it runs, for a message about their number."""

    @abstractmethod
    def nodes(self, requested: int | None) -> int:
        """Returns the number of nodes of the run. `requested` is `resources.node_count` of the spec, None if
        absent."""

    @abstractmethod
    def check(self, requested: int | None) -> None:
        """Raises SpecError if fields contradict each other. `requested` is `resources.node_count` of the
        spec, None if absent. Each single field has been checked before, by `fields`."""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


class NodeCountDistribution(Distribution):
    """A configuration with its own number of nodes, in the field `node_count`."""

    node_count: int

    def nodes(self, requested: int | None) -> int:  # noqa: ARG002 (the field says it)
        return self.node_count

    def check(self, requested: int | None) -> None:
        if requested not in (None, self.node_count):
            raise SpecError(
                "resources.node_count",
                f"is {requested}, but the distribution asks for {self.node_count} node(s); "
                "leave it out or make both the same",
            )


Configuration = TypeVar("Configuration", bound=Distribution)


def narrow(distribution: Distribution | None, kind: type[Configuration]) -> Configuration:
    """Returns `distribution` as the configuration class of one framework. Raises SpecError if it belongs to
    another framework or is None."""
    if not isinstance(distribution, kind):
        raise SpecError("distribution.type", f"must be {kind.type!r}")
    return distribution


def check_total(field: str, processes: int, maximum: int = MAX_PROCESSES) -> None:
    """Raises SpecError if a run has more processes than a plan can hold. `field` is the field of the spec
    that determines their number."""
    if processes > maximum:
        raise SpecError(field, f"makes {processes} processes in total; at most {maximum} can run together")
