"""What each kind of cluster answers. Placement and recovery ask this and never for the kind; pages ask for
it only where a kind has settings or a view of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clusters.models import Cluster
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.rejections import Refusal
from workspaces.models import User, Workspace

# Holder (a run's id) and attempt, as in leases.
AttemptKey = tuple[str, int]


@dataclass(frozen=True)
class Request:
    """What one attempt of a run needs of a cluster. `label`: what others are told about it ("run 41").
    `grace_s`: how long its ranks may take to save their work when they are asked to end."""

    cluster: Cluster
    holder: str
    attempt: int
    label: str
    demand: Demand
    workspace: Workspace
    person: User | None
    grace_s: int = 10


@dataclass(frozen=True)
class LostAttempt:
    """An attempt whose nodes were taken away by somebody else than the hub. `sentence`: who did it and why,
    with the remedy. `may_retry`: it ended through no fault of its own, so another attempt costs no retry.
    `canceled_by`: who canceled it outside of TrainHub, "" if nobody did. `by_itself`: its own processes have
    ended, and how they did counts more, if their nodes have said so."""

    holder: str
    attempt: int
    sentence: str
    may_retry: bool = False
    canceled_by: str = ""
    by_itself: bool = False


class OutsideScheduler(Protocol):
    """A queue outside of the hub, which decides who is next. Every method may be called again with the same
    arguments. `name`: what people call it."""

    name: str

    def place(self, request: Request) -> tuple[FreeNode, ...] | Refusal:
        """Asks for nodes, and returns them once the attempt has them all and they report. A refusal that is
        not permanent says what it waits for."""

    def job_text(self, request: Request) -> str:
        """Returns what would be submitted, for people to read."""

    def waits(self, cluster: Cluster) -> Mapping[AttemptKey, str]:
        """Returns the attempts that wait in the queue of the cluster and have no nodes yet, with the sentence
        why. `place` says the same of each, but a long queue is walked through often."""

    def describe(self, cluster: Cluster) -> str:
        """Returns in a phrase what there is, for whoever chooses a cluster."""

    def hints(self, cluster: Cluster, demand: Demand) -> Sequence[tuple[str, str]]:
        """Returns what holds for such a run there and not in other clusters: fields of the spec, each with a
        sentence."""

    def cancel(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, str]:
        """Gives up what the attempts have or wait for. Returns those whose scheduler could not be told so for
        want of something that a person has to do, with the sentence what: to be asked again."""

    def pending_cancel(self, holder: str) -> str:
        """Returns why something of this holder is not given up yet although `cancel` was called, "" if that
        is not so."""

    def open_attempts(self) -> list[AttemptKey]:
        """Returns the attempts that have or wait for something, in all clusters of this kind."""

    def observe(self, tell: Callable[[LostAttempt], None]) -> None:
        """Looks at what became of all that `open_attempts` returns. Tells of each attempt whose end is new,
        in the transaction that stores the end: whoever is interrupted is told again."""

    def may_explain(self, key: AttemptKey, now: datetime) -> bool:
        """To be asked when the nodes of an attempt report an end that may have been caused outside. Returns
        True as long as the scheduler has not been heard about it since: `observe`, and ask again."""

    def request_again(self, key: AttemptKey) -> bool:
        """Asks again for nodes for an attempt that lost them before it started. Returns False if that was
        done too often."""


class Backend(Protocol):
    """One kind of cluster. What follows a placement is the same for all kinds: leases on nodes, wake-ups,
    orders and reports. `scheduler`: who decides about nodes; None = the hub's own queue does."""

    scheduler: OutsideScheduler | None

    def nodes(
        self,
        cluster: Cluster,
        viewer: Workspace | None = None,
        over: Collection[AttemptKey] = (),
        max_age_s: float = 0.0,
    ) -> tuple[FreeNode, ...]:
        """Returns the nodes with what they offer now, none for a viewer who may not use the cluster. `over`:
        attempts that have ended. `max_age_s`: what the nodes are may be so old; what is leased may not."""
