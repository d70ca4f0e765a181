"""The use that counts against fair shares: charged as runs run, from their leases.

Use is a function of the leases and the time, so nothing has to run regularly for it to be right: what a lease
counts is the integral of the decay over its time (`trainhub_launch.scheduler.fair_share`). Leases that have
ended are added to one account for each person in a workspace, so that the rows stay few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from clusters.models import Cluster, Lease, MonthlyUse, UseAccount
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.fair_share import Account
from workspaces.database.compiled_queries import compiled

# The ids of a workspace and a person.
UserKey = tuple[int, int]
# Of a lease: workspace, person, GPUs, process slots, begin and end.
_LeaseRow = tuple[int | None, int, list[str], int, datetime, datetime | None]
# So many leases are added to the accounts in one transaction.
MAX_FOLDED = 500


def half_life_s() -> float:
    return float(settings.FAIR_SHARE_HALF_LIFE_DAYS) * 86400


def use_of(
    cluster: Cluster, now: datetime | None = None, *, workspaces: Collection[int] | None = None
) -> dict[UserKey, float]:
    """Returns the decayed use of the cluster in GPU-seconds, by workspace and person. `workspaces`: the ids
    of those that matter, None = all. Two queries."""
    seconds = (now or timezone.now()).timestamp()
    use: dict[UserKey, float] = defaultdict(float)
    rows: Iterable[tuple[int, int, float, datetime]]
    leases: Iterable[_LeaseRow]
    if workspaces is not None and len(workspaces) == 1:
        # Mostly one workspace waits.
        (one,) = workspaces
        rows, leases = _accounts_of(cluster.pk, one), _uncharged_of(cluster.pk, one)
    else:
        accounts, uncharged = _accounts(cluster.pk), _uncharged(cluster.pk)
        if workspaces is not None:
            accounts = accounts.filter(workspace__in=workspaces)
            uncharged = uncharged.filter(workspace__in=workspaces)
        rows, leases = accounts, uncharged
    half_life = half_life_s()
    # Thousands of people may have an account; an `Account` for each would double the time.
    for workspace, person, amount, as_of in rows:
        use[workspace, person] += amount * fair_share.decay(seconds - as_of.timestamp(), half_life)
    for owner, who, gpus, slots, created_at, released_at in leases:
        use[owner or 0, who] += _charge(len(gpus), slots, created_at, released_at, seconds)
    return dict(use)


def _accounts(cluster_id: int) -> QuerySet[UseAccount, tuple[int, int, float, datetime]]:
    rows = UseAccount.objects.filter(cluster_id=cluster_id)
    return rows.values_list("workspace", "person", "amount", "as_of")


def _uncharged(cluster_id: int) -> QuerySet[Lease, _LeaseRow]:
    leases = Lease.objects.filter(node__cluster_id=cluster_id, charged_at=None).exclude(workspace=None)
    # Tuples instead of model instances, because a busy cluster has thousands.
    return leases.values_list("workspace", "person", "gpus", "slots", "created_at", "released_at")


@compiled
def _accounts_of(
    cluster_id: int, workspace_id: int
) -> QuerySet[UseAccount, tuple[int, int, float, datetime]]:
    return _accounts(cluster_id).filter(workspace_id=workspace_id)


@compiled
def _uncharged_of(cluster_id: int, workspace_id: int) -> QuerySet[Lease, _LeaseRow]:
    return _uncharged(cluster_id).filter(workspace_id=workspace_id)


def gpu_seconds_in_month(now: datetime | None = None) -> dict[UserKey, float]:
    """Returns the GPU-seconds of the present calendar month (UTC) by workspace and person. Two queries."""
    now = now or timezone.now()
    month = _month_of(now)
    use: dict[UserKey, float] = defaultdict(float)
    rows = MonthlyUse.objects.filter(month=month).values_list("workspace", "person", "gpu_seconds")
    for workspace, person, gpu_seconds in rows:
        use[workspace, person] += gpu_seconds
    for lease in Lease.objects.filter(charged_at=None).exclude(workspace=None):
        for first, seconds in _by_month(lease.created_at, min(lease.released_at or now, now)):
            if first == month:
                use[lease.workspace_id or 0, lease.person] += len(lease.gpus) * seconds
    return dict(use)


def fold(now: datetime | None = None) -> int:
    """Adds leases that have ended to the accounts, and returns how many. Several workers may call it at
    once."""
    now = now or timezone.now()
    ended = Lease.objects.filter(charged_at=None).exclude(released_at=None)
    # Looked at without a lock first: this runs every few seconds and seldom has anything to do.
    if not ended.exists():
        return 0
    with transaction.atomic():
        # A second worker waits for these rows, and then no longer finds them.
        locked = ended.select_for_update(of=("self",)).select_related("node").order_by("pk")
        leases = list(locked[:MAX_FOLDED])
        _add_to_accounts([lease for lease in leases if lease.workspace_id is not None], now)
        Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(charged_at=now)
    return len(leases)


def _add_to_accounts(leases: list[Lease], now: datetime) -> None:
    amounts: dict[tuple[int, int, int], float] = defaultdict(float)
    months: dict[tuple[int, date, int], float] = defaultdict(float)
    for lease in leases:
        workspace = lease.workspace_id or 0
        amounts[lease.node.cluster_id, workspace, lease.person] += _charge(
            len(lease.gpus), lease.slots, lease.created_at, lease.released_at, now.timestamp()
        )
        for month, seconds in _by_month(lease.created_at, lease.released_at or now):
            months[workspace, month, lease.person] += len(lease.gpus) * seconds
    # In one order everywhere, so that two workers cannot wait for each other.
    for (cluster, workspace, person), amount in sorted(amounts.items()):
        row, _ = UseAccount.objects.select_for_update().get_or_create(
            cluster_id=cluster, workspace_id=workspace, person=person, defaults={"as_of": now}
        )
        account = Account(row.amount, row.as_of.timestamp()).plus(amount, now.timestamp(), half_life_s())
        row.amount, row.as_of = account.amount, max(now, row.as_of)
        row.save(update_fields=["amount", "as_of"])
    for (workspace, month, person), gpu_seconds in sorted(months.items()):
        monthly, _ = MonthlyUse.objects.get_or_create(workspace_id=workspace, month=month, person=person)
        MonthlyUse.objects.filter(pk=monthly.pk).update(gpu_seconds=F("gpu_seconds") + gpu_seconds)


def _charge(gpus: int, slots: int, begin: datetime, end: datetime | None, now: float) -> float:
    end_s = now if end is None else end.timestamp()
    return fair_share.weight(gpus, slots) * fair_share.charge(begin.timestamp(), end_s, now, half_life_s())


def _month_of(at: datetime) -> date:
    return at.astimezone(UTC).date().replace(day=1)


def _by_month(start: datetime, end: datetime) -> Iterator[tuple[date, float]]:
    """Yields the first day of each month that the span touches, and the seconds in it."""
    while start < end:
        month = _month_of(start)
        following = date(month.year + month.month // 12, month.month % 12 + 1, 1)
        until = min(end, datetime(following.year, following.month, 1, tzinfo=UTC))
        yield month, (until - start).total_seconds()
        start = until
