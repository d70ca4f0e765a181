"""Ends external runs whose client has promised signs of life and gives none any more."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs import external
from jobs.models import Run, RunTag
from jobs.states import RunKind, RunState

# The value is a time in ISO 8601 with its offset. A client moves it on while it works, and removes or empties
# the tag when it has ended the run.
ALIVE_UNTIL = "trainhub.alive_until"


def end_abandoned(now: datetime | None = None) -> int:
    """Sets running external runs to failed whose tag names a time that is past. Returns how many. A client
    that comes back may set its run to running again."""
    now = now or timezone.now()
    running = Run.objects.filter(kind=RunKind.EXTERNAL, state=RunState.RUNNING, deleted_at=None)
    tags = RunTag.objects.filter(run__in=running.values("pk"), key=ALIVE_UNTIL).select_related("run")
    count = 0
    for tag in tags.order_by("run"):
        until = _read_time(tag.value)
        if until is not None and until < now:
            message = f"Its client has given no sign of life, and had promised one before {tag.value}."
            # Its client may have ended it since it was read.
            count += external.set_state(
                tag.run, RunState.FAILED, None, message=message, only_from=RunState.RUNNING
            )
    return count


def _read_time(text: str) -> datetime | None:
    try:
        time = parse_datetime(text)
    except ValueError:
        return None  # well formed, and no date, such as the 31st of February
    # Without an offset it is not known which moment is meant.
    return time if time is not None and timezone.is_aware(time) else None
