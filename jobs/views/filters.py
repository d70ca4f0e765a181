"""What the run list may be narrowed to, read from the address."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from jobs.models import Run
from jobs.states import ACTIVE, WAITING, RunState
from workspaces.models import User

GROUPS: dict[str, tuple[str, frozenset[RunState]]] = {
    "active": ("Active", ACTIVE),
    "waiting": ("Waiting", WAITING),
    "running": ("Running", frozenset({RunState.RUNNING, RunState.FINALIZING})),
    "completed": ("Completed", frozenset({RunState.COMPLETED})),
    "failed": ("Failed", frozenset({RunState.FAILED})),
    "canceled": ("Canceled", frozenset({RunState.CANCELED, RunState.CANCEL_REQUESTED})),
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
            text=query.get("q", "").strip()[:200],
            mine=query.get("mine", "") == "1",
        )

    def apply(self, runs: QuerySet[Run], user: User) -> QuerySet[Run]:
        if self.state:
            runs = runs.filter(state__in=GROUPS[self.state][1])
        if self.experiment:
            runs = runs.filter(experiment__name=self.experiment)
        if self.text:
            runs = runs.filter(text_matches(self.text))
        return runs.filter(created_by=user) if self.mine else runs

    def __bool__(self) -> bool:
        return self != RunFilter()


def text_matches(text: str) -> Q:
    """By number (`41`, `run 41`, `#41`), by the beginning of the id, by a part of the name or experiment."""
    matches = Q(display_name__icontains=text) | Q(experiment__name__icontains=text)
    number = text.lower().removeprefix("run").strip().removeprefix("#")
    if number.isdecimal() and len(number) < 10:
        matches |= Q(number=int(number))
    if len(text) >= 6:
        matches |= Q(id__startswith=text.lower())
    return matches
