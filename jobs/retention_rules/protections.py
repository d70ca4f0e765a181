"""Why the data of a run is kept, whatever the rules say. Higher floors add reasons of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from clusters.models import Lease
from jobs.models import DatasetOrigin, Run, RunTag
from jobs.states import FINAL
from workspaces.models import Workspace

# The tag by which people keep a run; with one of these values it does not.
KEEP_TAG = "keep"
NO = ("no", "false", "0")


@dataclass(frozen=True)
class Protection:
    """`key`: for programs; `words`: why, after "kept because". `condition`: which runs of a workspace it
    protects."""

    key: str
    words: str
    condition: Callable[[Workspace], Q]


def protects(workspace: Workspace) -> Q:
    """Returns the condition that something protects a run of the workspace."""
    condition = Q(pk__in=())
    for protection in PROTECTIONS:
        condition |= protection.condition(workspace)
    return condition


def _is_pinned(_: Workspace) -> Q:
    return Q(pinned=True)


def _is_tagged(_: Workspace) -> Q:
    tags = RunTag.objects.filter(run=OuterRef("pk"), key=KEEP_TAG).exclude(value__in=NO)
    return Q(Exists(tags))


def _is_resumed(workspace: Workspace) -> Q:
    """Runs with whose checkpoint a run begins that has not ended. Each run that was placed has a copy of it,
    which stays as long as its own outputs; one that waits may get it only then."""
    waiting = Run.objects.for_workspace(workspace).exclude(state__in=FINAL)
    names = waiting.order_by().values_list("spec__checkpoint__resume_from", flat=True)
    return Q(pk__in=sorted({str(name) for name in names if name}))


def _is_in_dataset(_: Workspace) -> Q:
    return Q(Exists(DatasetOrigin.objects.filter(run=OuterRef("pk"))))


def _is_on_gpus(_: Workspace) -> Q:
    return Q(Exists(Lease.objects.filter(holder=OuterRef("pk"), released_at=None)))


PROTECTIONS: list[Protection] = [
    Protection("pinned", "it is pinned", _is_pinned),
    Protection("tagged", f"it has the tag {KEEP_TAG}", _is_tagged),
    Protection("resumed", "a run that has not ended begins with its checkpoint", _is_resumed),
    Protection("dataset", "a dataset was made from its outputs", _is_in_dataset),
    Protection("lease", "a node has not confirmed that its processes have ended", _is_on_gpus),
]
