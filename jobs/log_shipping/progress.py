"""How far the logs of attempts are shipped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.db.models.functions import Now

from jobs.log_shipping.backlog import UnshippedLines, stream_of
from jobs.log_shipping.line_reader import SourceLine
from jobs.log_shipping.models import LogProgress, LogTarget
from jobs.logs import log_store
from jobs.models import Attempt

# A transaction that began an attempt may become visible after one that began another later, but not by more.
SETTLED_AFTER = timedelta(minutes=10)
# Nodes that are away for longer send nothing any more.
MAX_ABSENCE = timedelta(days=7)


class Overtaken(Exception):
    """Another worker has shipped the same lines meanwhile."""


def add_attempts(target: LogTarget, now: datetime) -> None:
    """Makes the rows of attempts that began since the last time."""
    later = Attempt.objects.filter(pk__gt=target.last_attempt)
    own = later if target.workspace_id is None else later.filter(run__workspace=target.workspace_id)
    rows = LogProgress.objects.filter(target=target, attempt=OuterRef("pk"))
    fresh = own.filter(~Exists(rows), created_at__gte=target.since).values_list("pk", flat=True)
    LogProgress.objects.bulk_create(
        (LogProgress(target=target, attempt_id=attempt) for attempt in fresh),
        batch_size=500,
        ignore_conflicts=True,
    )
    settled = later.filter(created_at__lt=now - SETTLED_AFTER).aggregate(last=Max("pk"))["last"]
    if settled:
        LogTarget.objects.filter(pk=target.pk).update(last_attempt=settled)
        target.last_attempt = settled


def open_progress(target: LogTarget) -> QuerySet[LogProgress]:
    """Returns what may have more to ship, with all that is said about its lines."""
    return (
        LogProgress.objects.filter(target=target, is_over=False)
        .select_related("attempt__run__workspace", "attempt__run__experiment")
        .prefetch_related("attempt__parts__node")
        .only(
            "offsets",
            "target",
            "attempt__number",
            "attempt__ended_at",
            "attempt__run__number",
            "attempt__run__workspace__slug",
            "attempt__run__experiment__name",
        )
        .order_by("pk")
    )


def settle(target: LogTarget, waiting: UnshippedLines, lines: Sequence[SourceLine], refused: int) -> None:
    """Records that these lines need not be sent again; the log system has left out `refused` of them. Raises
    Overtaken if another worker has recorded some of them."""
    # Of each log the last line is left.
    ends = {line.source: line.end for line in lines}
    changed: dict[int, LogProgress] = {}
    offsets: dict[int, dict[str, int]] = {}
    for source, end in ends.items():
        item = waiting.progress_of(source)
        changed[item.pk] = item
        offsets.setdefault(item.pk, {})[source.log] = end
    with transaction.atomic():
        for row in LogProgress.objects.select_for_update().filter(pk__in=changed).order_by("pk"):
            item = changed[row.pk]
            if row.offsets != item.offsets:
                raise Overtaken
            item.offsets = row.offsets | offsets[row.pk]
            item.save(update_fields=["offsets"])
        changes: dict[str, object] = {"refused_lines": F("refused_lines") + refused}
        if refused < len(lines):
            changes |= {
                "lines": F("lines") + len(lines) - refused,
                "bytes": F("bytes") + sum(len(line.text) for line in lines),
                "last_accepted_at": Now(),
            }
        LogTarget.objects.filter(pk=target.pk).update(**changes)


def close_finished(target: LogTarget, now: datetime) -> None:
    """Marks what is shipped whole, and will not grow."""
    ended = open_progress(target).filter(attempt__ended_at__isnull=False)
    for item in ended:
        attempt = item.attempt
        is_settled = all(part.settled_at for part in attempt.parts.all())
        if not is_settled and now - (attempt.ended_at or now) < MAX_ABSENCE:
            continue
        sizes = log_store.log_sizes(attempt.run_id, attempt.number)
        if all(item.offsets.get(name, 0) >= size for name, size in sizes.items() if stream_of(name)):
            LogProgress.objects.filter(pk=item.pk, offsets=item.offsets).update(is_over=True)
