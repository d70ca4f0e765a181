"""Which log systems there are, and how each is doing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone

from jobs.log_shipping import destinations
from jobs.log_shipping.destinations import Destination, DestinationError
from jobs.log_shipping.models import LogProgress, LogTarget
from jobs.models import Attempt
from workspaces.secrets import placeholders, uses
from workspaces.secrets.errors import SecretsUnavailable

FIRST_PAUSE_S = 2.0
MAX_PAUSE_S = 300.0
MAX_TEXT = 400
MAX_DISORDER = 1000
_STATE_COLUMNS = (
    "kind",
    "lines",
    "refused_lines",
    "last_refusal",
    "last_accepted_at",
    "last_error",
    "failing_since",
    "behind_bytes",
    "behind_since",
)


class TargetUnusable(Exception):
    """The target of a workspace cannot be used as it is stored; the message is a sentence with the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def hub_name() -> str:
    """Returns the name of this hub in its lines: the host of its address."""
    return urlsplit(settings.PUBLIC_URL).netloc


def all_targets() -> QuerySet[LogTarget]:
    """Returns the targets that get lines: those of workspaces, and the hub's while the settings name one."""
    targets = LogTarget.objects.select_related("workspace").order_by("try_at")
    return targets if settings.LOG_DESTINATION else targets.exclude(workspace=None)


def due_targets(now: datetime) -> list[LogTarget]:
    """Returns the targets that are to be tried now, with that of the settings."""
    hub_target(now)
    return list(all_targets().filter(try_at__lte=now, workspace__archived_at=None))


def destination_of(target: LogTarget) -> Destination:
    """Returns where the lines go, with the values of secrets. Raises TargetUnusable."""
    if target.workspace is None:
        if settings.LOG_DESTINATION is None:
            raise TargetUnusable("The hub's settings name no log system any more (SHIP_LOGS_TO).")
        destination: Destination = settings.LOG_DESTINATION
        return destination
    names = placeholders.names_in(target.headers)
    try:
        values = uses.take(target.workspace, None, names, uses.LOG_TARGET, "logs") if names else {}
        return Destination(
            target.kind,
            target.url,
            destinations.parse_headers(placeholders.fill(target.headers, values)),
            destinations.parse_labels(target.labels),
            target.ca,
            settings.LOG_LINE_BYTES,
            is_guarded=True,
        )
    except SecretsUnavailable as error:
        raise TargetUnusable(f"{error.message[:1].upper()}{error.message[1:]}.") from error
    except DestinationError as error:
        raise TargetUnusable(f"The field {error.field} {error.message}.") from error


def start_from(target: LogTarget, since: datetime) -> None:
    """Has the target get all attempts that began after `since`, and no more of those before."""
    LogProgress.objects.filter(target=target, is_over=False, attempt__created_at__lt=since).update(
        is_over=True
    )
    before = Attempt.objects.filter(created_at__lt=since).order_by("-pk").values_list("pk", flat=True).first()
    # Attempts that begin at the same time may have their ids in another order.
    last_attempt = max(0, (before or 0) - MAX_DISORDER)
    LogTarget.objects.filter(pk=target.pk).update(since=since, last_attempt=last_attempt)


def record_failure(target: LogTarget, message: str, retry_after_s: float | None, now: datetime) -> None:
    pause_s = retry_after_s
    if pause_s is None:
        pause_s = min(FIRST_PAUSE_S * 2 ** min(target.failures, 20), MAX_PAUSE_S)
    LogTarget.objects.filter(pk=target.pk).update(
        failures=F("failures") + 1,
        failing_since=target.failing_since or now,
        last_error=message[:MAX_TEXT],
        try_at=now + timedelta(seconds=pause_s),
    )


def record_refusal(target: LogTarget, reason: str) -> None:
    LogTarget.objects.filter(pk=target.pk).update(last_refusal=reason[:MAX_TEXT])


def record_backlog(target: LogTarget, waiting_bytes: int, oldest_at: datetime | None) -> None:
    if (target.behind_bytes, target.behind_since) != (waiting_bytes, oldest_at):
        LogTarget.objects.filter(pk=target.pk).update(behind_bytes=waiting_bytes, behind_since=oldest_at)


def record_success(target: LogTarget) -> None:
    if target.failures:
        LogTarget.objects.filter(pk=target.pk).update(failures=0, failing_since=None, last_error="")
        target.failures, target.failing_since = 0, None


def retry_now(target: LogTarget) -> None:
    """Has the next round try the target, whatever pause it has."""
    LogTarget.objects.filter(pk=target.pk).update(try_at=timezone.now())


@dataclass(frozen=True)
class LogTargetState:
    """How a target is doing, for people. `word`: working, failing, or unused as long as nothing has arrived
    there."""

    name: str
    host: str
    word: str
    kind: str
    lines: int
    refused_lines: int
    last_refusal: str
    last_accepted_at: datetime | None
    last_error: str
    failing_since: datetime | None
    behind_bytes: int
    behind_since: datetime | None


def state_of(target: LogTarget) -> LogTargetState:
    if target.failing_since is not None:
        word = "failing"
    else:
        word = "unused" if target.last_accepted_at is None else "working"
    return LogTargetState(
        name=str(target.workspace) if target.workspace else "all workspaces",
        host=urlsplit(target.url).netloc,
        word=word,
        **{name: getattr(target, name) for name in _STATE_COLUMNS},
    )


def hub_target(now: datetime) -> LogTarget | None:
    """Returns the target of the settings, which is made the first time; None if they name none."""
    destination = settings.LOG_DESTINATION
    rows = LogTarget.objects.filter(workspace=None)
    if destination is None:
        return None
    target, is_new = rows.get_or_create(
        workspace=None,
        defaults={"kind": destination.kind, "url": destination.url, "since": now, "try_at": now},
    )
    if is_new:
        start_from(target, now)
    elif (target.kind, target.url) != (destination.kind, destination.url):
        # Another address may work where the old one did not. What was shipped already is not shipped again.
        rows.update(kind=destination.kind, url=destination.url, try_at=now)
        target.kind, target.url = destination.kind, destination.url
    return target
