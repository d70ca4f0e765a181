"""What the run list may be narrowed to, read from the address."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from jobs.querysets import RunQuerySet
from jobs.states import ACTIVE, WAITING, RunState
from workspaces.models import User

GROUPS: dict[str, tuple[str, frozenset[RunState]]] = {
    "active": ("Active", ACTIVE),
    "waiting": ("Waiting", WAITING),
    "running": ("Running", ACTIVE - WAITING),
    "completed": ("Completed", frozenset({RunState.COMPLETED})),
    "failed": ("Failed", frozenset({RunState.FAILED})),
    "canceled": ("Canceled", frozenset({RunState.CANCELED})),
}


@dataclass(frozen=True)
class RunFilter:
    state: str = ""
    experiment: str = ""
    text: str = ""
    mine: bool = False

    @classmethod
    def read(cls, query: QueryDict) -> RunFilter:
        state = query.get("state", "")
        return cls(
            state=state if state in GROUPS else "",
            experiment=query.get("experiment", "")[:128],
            text=query.get("q", "").replace("\x00", "").strip()[:200],
            mine=query.get("mine", "") == "1",
        )

    def apply(self, runs: RunQuerySet, user: User) -> RunQuerySet:
        runs = runs.matching(experiment=self.experiment, text=self.text)
        if self.state:
            runs = runs.filter(state__in=GROUPS[self.state][1])
        return runs.filter(created_by=user) if self.mine else runs

    def __bool__(self) -> bool:
        return self != RunFilter()
