"""Which attempts have logs that are still to move."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import takewhile

from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from jobs.log_shipping.models import LogProgress
from jobs.log_shipping.targets import all_targets
from jobs.models import Attempt, AttemptNode, LogArchive

# A transaction that began an attempt may become visible after one that began a later one, but not by more.
VISIBLE_AFTER = timedelta(minutes=10)
# From the moment when all of its logs are stored until their files go: whoever looked for the logs before
# that has opened the files, and other machines see the mark in the folder.
GRACE = timedelta(minutes=2)


def begin_archives(now: datetime, count: int) -> int:
    """Makes the rows of at most `count` attempts that began since the last time. Returns how many."""
    last = LogArchive.objects.aggregate(last=Max("pk"))["last"] or 0
    later = Attempt.objects.filter(pk__gt=last).order_by("pk").values_list("pk", "created_at")[:count]
    # None is passed over: an earlier one that is not visible yet would never be looked for again.
    visible = takewhile(lambda row: row[1] < now - VISIBLE_AFTER, later)
    added = [LogArchive(attempt_id=attempt) for attempt, _ in visible]
    LogArchive.objects.bulk_create(added, ignore_conflicts=True)
    return len(added)


def due_archives(now: datetime, after: timedelta) -> QuerySet[LogArchive]:
    """Returns the archives of attempts whose next step can be made: the attempt ended, and each of its nodes
    settled its part, longer than `after` ago, and no log system waits for its lines."""
    until = now - after
    parts = AttemptNode.objects.filter(attempt=OuterRef("attempt"))
    unsettled = parts.filter(Q(settled_at=None) | Q(settled_at__gt=until))
    unshipped = LogProgress.objects.filter(
        attempt=OuterRef("attempt"), is_over=False, target__in=all_targets().order_by().values("pk")
    )
    rows = LogArchive.objects.filter(
        Q(stored_at=None) | Q(stored_at__lte=now - GRACE),
        ~Exists(unsettled),
        ~Exists(unshipped),
        done_at=None,
        attempt__ended_at__lte=until,
        # What is deleted is purged soon.
        attempt__run__deleted_at=None,
    )
    return (
        rows.select_related("attempt__run")
        .only("stored_at", "attempt__number", "attempt__run__workspace")
        .order_by("pk")
    )
