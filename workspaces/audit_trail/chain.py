"""Chains the events of the audit trail, so that a changed or deleted row is found.

The worker seals new events every few seconds: each gets the next position, and a seal that is the SHA-256 of
the seal before and of the event's content. Whoever changes a sealed row, or deletes one in the middle, breaks
the chain. Whoever deletes the last rows, or computes the chain anew, contradicts the file of heads, to which
each batch appends its last position and seal, and which can lie on another machine (AUDIT_HEADS)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from workspaces.models import AuditAnchor, AuditEvent

log = logging.getLogger(__name__)
FIRST_SEAL = "0" * 64
HEAD = re.compile(r"(\d+) ([0-9a-f]{64}) \S+")
# A line that a full disk has cut off.
CUT_OFF_HEAD = re.compile(r"\d*( [0-9a-f]{0,64}( [-:\dTZ]*)?)?")
BATCH = 500
MAX_DELETED = 10_000


@dataclass(frozen=True)
class Head:
    """The end of the chain: the position and the seal of its last event; position 0 before the first one."""

    position: int
    seal: str


@dataclass
class Verification:
    """`problems`: what was changed or deleted, as sentences; empty: nothing. `count`: sealed events;
    `unsealed`: those that wait for the next batch."""

    count: int = 0
    unsealed: int = 0
    problems: list[str] = field(default_factory=list)


def seal_new() -> int:
    """Seals the events that are not sealed yet, and returns how many. Repeated and simultaneous calls are
    harmless."""
    count = 0
    while AuditEvent.objects.filter(position=None).exists():
        head, sealed = _seal_batch()
        if not sealed:
            break
        _append_head(head)
        count += sealed
    return count


def verify() -> Verification:
    """Reads the whole trail and the file of heads, and compares them."""
    result = Verification(unsealed=AuditEvent.objects.filter(position=None).count())
    head = _start()
    heads = _read_heads(result)
    _compare_head(head, heads, result)
    for event in AuditEvent.objects.exclude(position=None).order_by("position").iterator(BATCH):
        position = event.position or 0
        if position != head.position + 1:
            result.problems.append(f"The events {head.position + 1} to {position - 1} are missing.")
        elif event.seal != compute_seal(head.seal, event):
            result.problems.append(
                f"Event {position} ({event.verb} by {event.actor}) was changed after it was sealed."
            )
        head = Head(position, event.seal)
        _compare_head(head, heads, result)
        result.count += 1
    if heads and max(heads) > head.position:
        result.problems.append(f"The events {head.position + 1} to {max(heads)}, the last ones, are missing.")
    return result


def compute_seal(previous: str, event: AuditEvent) -> str:
    """Returns the seal of an event that follows the one with the seal `previous`."""
    content = [
        event.pk,
        event.at.astimezone(UTC).isoformat(),
        event.actor,
        event.workspace_id,
        event.verb,
        event.subject,
        event.detail,
    ]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(f"{previous}{text}".encode("utf-8", "surrogatepass")).hexdigest()


@transaction.atomic
def delete_old(now: datetime) -> int:
    """Deletes sealed events that are older than AUDIT_KEEP_DAYS, from the beginning of the chain on, at most
    MAX_DELETED so that other writers need not wait long, and returns how many. The chain then begins at the
    last one of them, which the file of heads gets, too."""
    if not settings.AUDIT_KEEP_DAYS:
        return 0
    cutoff = now.timestamp() - settings.AUDIT_KEEP_DAYS * 86400
    start = _locked_start()
    sealed = AuditEvent.objects.filter(position__gt=start.position)
    first_recent = sealed.filter(at__gte=datetime.fromtimestamp(cutoff, UTC)).order_by("position").first()
    old = sealed if first_recent is None else sealed.filter(position__lt=first_recent.position)
    # Positions have no gaps.
    last = old.filter(position__lte=start.position + MAX_DELETED).order_by("-position").first()
    if last is None:
        return 0
    AuditAnchor.objects.update(position=last.position, seal=last.seal)
    count = old.filter(position__lte=last.position).delete()[0]
    AuditEvent.objects.create(actor="hub", verb="audit.expired", subject=f"{count} events", detail={})
    _append_head(Head(last.position or 0, last.seal))
    return count


@transaction.atomic
def _seal_batch() -> tuple[Head, int]:
    # The row of the anchor is the lock: of two sealers the second continues where the first has ended.
    head = _locked_start()
    last = AuditEvent.objects.exclude(position=None).order_by("-position").first()
    if last is not None:
        head = Head(last.position or 0, last.seal)
    events = list(AuditEvent.objects.filter(position=None).order_by("pk")[:BATCH])
    for event in events:
        head = Head(head.position + 1, compute_seal(head.seal, event))
        event.position, event.seal = head.position, head.seal
    AuditEvent.objects.bulk_update(events, ["position", "seal"])
    return head, len(events)


def _locked_start() -> Head:
    AuditAnchor.objects.get_or_create(pk=1, defaults={"seal": FIRST_SEAL})
    anchor = AuditAnchor.objects.select_for_update().get(pk=1)
    return Head(anchor.position, anchor.seal)


def _start() -> Head:
    anchor = AuditAnchor.objects.filter(pk=1).first()
    return Head(0, FIRST_SEAL) if anchor is None else Head(anchor.position, anchor.seal)


def _compare_head(head: Head, heads: dict[int, str], result: Verification) -> None:
    expected = heads.get(head.position)
    if expected is not None and expected != head.seal:
        result.problems.append(
            f"The seal of event {head.position} differs from {_file().name}: the chain was computed anew."
        )


def _append_head(head: Head) -> None:
    """Adds a line to the file of heads. An error is logged: the next batch names a later head."""
    line = f"{head.position} {head.seal} {timezone.now():%Y-%m-%dT%H:%M:%SZ}\n"
    try:
        descriptor = os.open(_file(), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # A line that was cut off, as on a full disk, must not swallow this one.
            is_cut_off = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, ("\n" if is_cut_off else "").encode() + line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        log.error("The head of the audit trail could not be written to %s: %s", _file(), error)


def _read_heads(result: Verification) -> dict[int, str]:
    """Returns position -> seal of the file of heads. Without the file, or with a line that is none, adds a
    problem."""
    heads: dict[int, str] = {}
    try:
        for number, line in enumerate(_lines(_file()), 1):
            if match := HEAD.fullmatch(line):
                heads[int(match[1])] = match[2]
            elif not CUT_OFF_HEAD.fullmatch(line):
                result.problems.append(f"Line {number} of {_file().name} is not a head.")
    except FileNotFoundError:
        if AuditEvent.objects.exclude(position=None).exists():
            result.problems.append(
                f"{_file()} is missing: that the last events were deleted would not be found."
            )
    except (OSError, UnicodeDecodeError) as error:
        result.problems.append(f"{_file()} cannot be read: {error}.")
    return heads


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="ascii") as file:
        for line in file:
            yield line.rstrip("\n")


def _file() -> Path:
    return Path(settings.AUDIT_HEADS)
