"""What a node has to do, whatever its kind, and what that means for the answer to a report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trainhub_launch.order import OrderKind
from trainhub_launch.report import StopOrder

Key = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Assignment(ABC):
    """An unsettled order that a node has, or should have. `run` and `attempt`: its key in orders and reports.
    `claimed_at`: None until the node has asked for the order. `phase`: how far the node is (Phase). `ended`:
    its outcome is known. `daemon`: argv of the MPI daemon that is wanted here. `checkpoints`: number and name
    of each checkpoint of which this node's part is wanted."""

    kind: ClassVar[OrderKind]
    run: str
    attempt: int
    claimed_at: datetime | None
    phase: str
    ended: bool
    daemon: tuple[str, ...] = ()
    checkpoints: tuple[tuple[int, str], ...] = ()

    @property
    def key(self) -> Key:
        return self.run, self.attempt

    @property
    @abstractmethod
    def over(self) -> bool:
        """Returns whether nothing more is needed from the node, whatever it still runs."""

    @property
    @abstractmethod
    def to_start(self) -> bool:
        """Returns whether the node must claim."""

    @property
    @abstractmethod
    def needs_daemon(self) -> bool: ...

    @abstractmethod
    def stop(self) -> StopOrder | None:
        """Returns the order to end it, if the node must."""

    @abstractmethod
    def stored_name(self, name: str) -> str | None:
        """Returns the name under which the hub stores a log of this node, or None if it stores none of that
        name."""
