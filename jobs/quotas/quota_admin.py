"""Sets quotas, for operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from clusters.models import Quota
from jobs.quotas import disk_use
from jobs.quotas.quota_check import PEOPLE, PERSON, SCOPES, WORKSPACE, QuotaBook
from jobs.task_messages import launch_soon
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler.quotas import QuotaBalance, excess
from workspaces import audit
from workspaces.models import Membership, User, Workspace

LIMITS = ("gpus", "gpu_hours", "waiting_runs", "disk_gib")
FRACTIONS = ("gpu_hours", "disk_gib")
MAX_LIMIT = 1_000_000


@dataclass(frozen=True)
class QuotaRow:
    """A quota with what is used of it. `note`: what it is exceeded by already, "" = nothing."""

    scope: str
    person: str
    balance: QuotaBalance

    @property
    def note(self) -> str:
        return excess(self.balance)


def quota_rows(workspace: Workspace, only: User | None = None) -> list[QuotaRow]:
    """Returns the quotas of the workspace: its own, that for each person, and those of single persons by
    name. `only`: of single persons only this one."""
    quotas = Quota.objects.filter(workspace=workspace).select_related("person", "workspace")
    book = QuotaBook(workspace)
    rows = [
        QuotaRow(
            quota.scope, "" if quota.person is None else quota.person.get_username(), book.balance_of(quota)
        )
        for quota in quotas
        if only is None or quota.person_id in (None, only.pk)
    ]
    return sorted(rows, key=lambda row: (SCOPES.index(row.scope), row.person))


def set_quota(
    workspace: Workspace, scope: str, person: str, limits: Mapping[str, float | None], who: User
) -> QuotaRow | None:
    """Sets the limits of a quota (LIMITS; those that are missing or None are none) and returns it; without
    any limit it is removed, and None returned. Nothing that runs is stopped. Raises SpecError that names the
    field."""
    user = _person(workspace, scope, person)
    values = {name: _limit(name, limits.get(name)) for name in LIMITS}
    if values["disk_gib"] is not None:
        # So that the answer can say what is above it. Runs and files are counted before the lock is taken.
        disk_use.measure_again(workspace)
    with transaction.atomic():
        # Submissions lock the same row, and so do other changes of a quota that does not exist yet.
        Workspace.objects.select_for_update().get(pk=workspace.pk)
        rows = Quota.objects.filter(workspace=workspace, scope=scope, person=user)
        before = rows.values(*LIMITS).first() or dict.fromkeys(LIMITS)
        if before == values:
            return _row(workspace, scope, person)
        if any(value is not None for value in values.values()):
            Quota.objects.update_or_create(workspace=workspace, scope=scope, person=user, defaults=values)
        else:
            rows.delete()
        subject = person or ("each person" if scope == PEOPLE else str(workspace.slug))
        audit.record(who, "quota.changed", subject, workspace, scope=scope, **values)
        # Runs that waited for it may start now.
        launch_soon()
    return _row(workspace, scope, person)


def _row(workspace: Workspace, scope: str, person: str) -> QuotaRow | None:
    rows = quota_rows(workspace)
    return next((row for row in rows if (row.scope, row.person) == (scope, person)), None)


def _person(workspace: Workspace, scope: str, name: str) -> User | None:
    if scope not in SCOPES:
        raise SpecError("scope", f"must be one of {', '.join(SCOPES)}")
    if scope in (WORKSPACE, PEOPLE):
        if name:
            raise SpecError("person", f"must be empty for the scope {scope}")
        return None
    if "\0" in name:
        raise SpecError("person", "must not contain NUL characters")
    membership = (
        Membership.objects.select_related("user").filter(workspace=workspace, user__username=name).first()
    )
    if membership is None:
        raise SpecError("person", f"there is no {name!r} in the workspace {workspace.slug}; name a member")
    return membership.user


def _limit(name: str, value: float | None) -> float | int | None:
    if value is None:
        return None
    if not math.isfinite(value) or not 0 <= value <= MAX_LIMIT:
        raise SpecError(name, f"must be between 0 and {MAX_LIMIT}, or empty for no limit")
    if name in FRACTIONS:
        return float(value)
    if value != int(value):
        raise SpecError(name, "must be a whole number, or empty for no limit")
    return int(value)


__all__ = ["LIMITS", "PERSON", "QuotaRow", "quota_rows", "set_quota"]
