"""Reads quotas with what is used of them: for placement, for submissions and for the pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Count, QuerySet

from clusters.fair_share import use
from clusters.fair_share.use import UserKey
from clusters.models import Lease, Quota
from jobs.models import Run
from jobs.quotas import disk_use
from jobs.quotas.disk_use import StoredBytes
from jobs.states import RunKind, RunState
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.quotas import QuotaBalance, quota_refusal
from trainhub_launch.scheduler.rejections import Refusal
from workspaces.database.compiled_queries import compiled
from workspaces.models import User, Workspace

WORKSPACE, PEOPLE, PERSON = "workspace", "people", "person"
SCOPES = (WORKSPACE, PEOPLE, PERSON)


class QuotaBook:
    """The quotas of all workspaces, or of one, with their use. Read once for many runs: one query if there is
    no quota, at most six more otherwise. `only_disk`: of their use only the disk."""

    def __init__(self, workspace: Workspace | None = None, *, only_disk: bool = False) -> None:
        rows = _all_quotas() if workspace is None else _quotas_of(workspace.pk)
        self._quotas = {(row.workspace_id, row.scope, row.person_id): row for row in rows}
        self._held: dict[UserKey, int] = {}
        self._seconds: dict[UserKey, float] = {}
        self._waiting: dict[UserKey, int] = {}
        self._disk: StoredBytes = {}
        if any(quota.disk_gib is not None for quota in self._quotas.values()):
            self._disk = disk_use.disk_bytes(workspace)
        if self._quotas and not only_disk:
            self._held, self._waiting = _held_gpus(), _waiting_runs()
            self._seconds = use.gpu_seconds_in_month()

    def refusal(self, run: Run, demand: Demand) -> Refusal | None:
        """Returns why the run may not start now under its quotas, or None. No query."""
        if not self._quotas:
            return None
        return quota_refusal(self.balances(run.workspace, run.created_by), demand)

    def add_lease(self, run: Run, placement: Placement) -> None:
        """Counts what a run has just been given."""
        key = run.workspace_id, run.created_by_id or 0
        self._held[key] = self._held.get(key, 0) + sum(len(node.gpus) for node in placement.nodes)

    def balances(self, workspace: Workspace, person: User | None) -> list[QuotaBalance]:
        """Returns the limits that hold for this person in this workspace, with their use; no limits are left
        out."""
        balances = []
        own = self._quotas.get((workspace.pk, WORKSPACE, None))
        if own is not None:
            balances.append(self._balance(own, f"workspace {workspace.slug}", None))
        if person is not None:
            each = self._quotas.get((workspace.pk, PEOPLE, None))
            quota = self._quotas.get((workspace.pk, PERSON, person.pk), each)
            if quota is not None:
                owner = f"{person.get_username()} in workspace {workspace.slug}"
                balances.append(self._balance(quota, owner, person.pk))
        return balances

    def balance_of(self, quota: Quota) -> QuotaBalance:
        """Returns a quota of a workspace or of one person with its use; one for each person has none."""
        slug = quota.workspace.slug
        if quota.scope == PEOPLE:
            owner = f"each person in workspace {slug}"
            return QuotaBalance(owner, quota.gpus, quota.gpu_hours, quota.waiting_runs, quota.disk_gib)
        who = quota.person
        owner = f"workspace {slug}" if who is None else f"{who.get_username()} in workspace {slug}"
        return self._balance(quota, owner, quota.person_id)

    def _balance(self, quota: Quota, owner: str, person: int | None) -> QuotaBalance:
        def total(amounts: dict[UserKey, float] | dict[UserKey, int]) -> float:
            return sum(
                amount
                for (workspace, who), amount in amounts.items()
                if workspace == quota.workspace_id and person in (None, who)
            )

        return QuotaBalance(
            owner,
            quota.gpus,
            quota.gpu_hours,
            quota.waiting_runs,
            quota.disk_gib,
            gpus_held=int(total(self._held)),
            gpu_hours_used=total(self._seconds) / 3600,
            runs_waiting=int(total(self._waiting)),
            disk_bytes_used=self._disk.get((quota.workspace_id, person), 0),
        )


def lock_quotas(workspace: Workspace) -> QuotaBook | None:
    """Locks the quotas of a workspace until the transaction ends and returns them; None if it has none.

    Of two runs that are placed at once in two clusters, the second sees what the first has got."""
    return QuotaBook(workspace) if _lock(workspace.pk) else None


@compiled
def _lock(workspace_id: int) -> QuerySet[Quota, tuple[int]]:
    rows = Quota.objects.select_for_update().filter(workspace_id=workspace_id).order_by("pk")
    return rows.values_list("pk")


@compiled
def _all_quotas() -> QuerySet[Quota]:
    return Quota.objects.select_related("workspace", "person")


@compiled
def _quotas_of(workspace_id: int) -> QuerySet[Quota]:
    return Quota.objects.select_related("workspace", "person").filter(workspace_id=workspace_id)


def _held_gpus() -> dict[UserKey, int]:
    counts: dict[UserKey, int] = defaultdict(int)
    # Reservations (attempt 0) do not count: their run waits, and counts whole when it starts.
    leases = Lease.objects.filter(released_at=None, attempt__gt=0).exclude(workspace=None)
    for workspace, person, gpus in leases.values_list("workspace", "person", "gpus"):
        counts[workspace, person] += len(gpus)
    return dict(counts)


def _waiting_runs() -> dict[UserKey, int]:
    waiting = Run.objects.filter(kind=RunKind.JOB, state=RunState.QUEUED).order_by()
    counts: Iterable[tuple[int, int | None, int]] = waiting.values_list("workspace", "created_by").annotate(
        count=Count("pk")
    )
    return {(workspace, person or 0): count for workspace, person, count in counts}
