"""Reads and changes the rows of the store in use. Each change is one statement, so any number of servers may
make it at once."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from workspaces.hub_metrics.instruments import UPLOAD_RETRIES
from workspaces.object_store.client import store_configuration
from workspaces.object_store.models import LIVE, ObjectState, StoredObject

# Set when a file begins to wait for its upload, for the thread of this process that uploads.
new_uploads = threading.Event()
# SQLite allows a limited number of parameters in one query.
AT_ONCE = 500
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0


def is_store_used() -> bool:
    """Returns whether BLOB_STORE is set."""
    return store_configuration() is not None


def live_objects() -> models.QuerySet[StoredObject]:
    """Returns the rows of the files that the hub has in the store, or will have; none without BLOB_STORE."""
    configuration = store_configuration()
    if configuration is None:
        return StoredObject.objects.none()
    return StoredObject.objects.filter(place=configuration.place, state__in=LIVE)


def live_object(sha256: str) -> StoredObject | None:
    """Returns the row of a file, or None."""
    return live_objects().filter(sha256=sha256).first() if is_store_used() else None


def live_hashes(among: Collection[str], *states: ObjectState) -> set[str]:
    """Returns those of the hashes that have a live row, in one of `states` if any is given."""
    if not is_store_used():
        return set()
    rows = live_objects().filter(state__in=states) if states else live_objects()
    hashes: set[str] = set()
    for some in _batches(among):
        hashes.update(rows.filter(sha256__in=some).values_list("sha256", flat=True))
    return hashes


def record_object(sha256: str, size: int, kept_at: datetime | None = None) -> None:
    """Lets the file, which this server has on its disk, wait for its upload, unless it has a row already.
    Marks it as kept in any case."""
    configuration = store_configuration()
    if configuration is None or extend_object(sha256):
        return
    try:
        with transaction.atomic():
            StoredObject.objects.create(
                place=configuration.place,
                sha256=sha256,
                key=f"{sha256[:2]}/{sha256}-{secrets.token_hex(4)}",
                size_bytes=size,
                server=_server(),
                kept_at=kept_at or timezone.now(),
            )
    except IntegrityError:
        # Another request has stored the same bytes in this moment.
        extend_object(sha256)
    transaction.on_commit(new_uploads.set)


def extend_object(sha256: str) -> bool:
    """Marks the file as kept now. Returns False if it has no row."""
    return is_store_used() and bool(live_objects().filter(sha256=sha256).update(kept_at=timezone.now()))


def set_kept_time(sha256: str, kept_at: float) -> None:
    """Sets the time at which the file was kept last (Unix seconds), if it has a row."""
    live_objects().filter(sha256=sha256).update(kept_at=datetime.fromtimestamp(kept_at, UTC))


def unkept_objects(moment: float) -> Iterator[StoredObject]:
    """Yields the rows of files that nobody has kept since `moment` (Unix seconds)."""
    rows = live_objects().filter(kept_at__lt=datetime.fromtimestamp(moment, UTC)).order_by("pk")
    last = 0
    while some := list(rows.filter(pk__gt=last)[:AT_ONCE]):
        yield from some
        last = some[-1].pk


def discard_object(sha256: str, *, unkept_since: float) -> int | None:
    """Ends the file of that row. Returns its bytes, or None if there is no row or somebody has kept it
    since that moment (Unix seconds). The object itself goes later."""
    row = live_object(sha256)
    if row is None:
        return None
    unkept = live_objects().filter(pk=row.pk, kept_at__lte=datetime.fromtimestamp(unkept_since, UTC))
    if not unkept.update(state=ObjectState.DELETED, deleted_at=timezone.now()):
        return None
    return row.size_bytes


def waiting_objects() -> models.QuerySet[StoredObject]:
    """Returns the rows of files that are not uploaded yet, the one that waits longest first."""
    return live_objects().filter(state=ObjectState.WAITING).order_by("try_at")


def mark_uploaded(row: StoredObject) -> bool:
    """Records that the object is complete. Returns False if the file was deleted meanwhile."""
    waiting = StoredObject.objects.filter(pk=row.pk, state=ObjectState.WAITING)
    return bool(waiting.update(state=ObjectState.STORED, error="", server=""))


def forget_upload(sha256: str) -> None:
    """Deletes the row of a file that waits on this server and is damaged there, so that the same bytes can be
    stored again."""
    # Without a store nothing waits, and whoever meets a damaged file needs no database.
    if is_store_used():
        live_objects().filter(sha256=sha256, state=ObjectState.WAITING, server=_server()).delete()


def postpone_upload(row: StoredObject, error: str) -> None:
    """Records that an upload has failed; each one waits twice as long as the one before."""
    UPLOAD_RETRIES.inc()
    pause_s = min(SHORTEST_PAUSE_S * 2 ** min(row.tries, 10), LONGEST_PAUSE_S)
    StoredObject.objects.filter(pk=row.pk, state=ObjectState.WAITING).update(
        tries=row.tries + 1, error=error[:400], try_at=timezone.now() + timedelta(seconds=pause_s)
    )


def expired_objects(count: int) -> list[StoredObject]:
    """Returns at most `count` rows of deleted files whose objects are to go now."""
    configuration = store_configuration()
    if configuration is None:
        return []
    before = timezone.now() - timedelta(days=configuration.deleted_days)
    deleted = StoredObject.objects.filter(place=configuration.place, state=ObjectState.DELETED)
    return list(deleted.filter(deleted_at__lte=before).order_by("pk")[:count])


def _server() -> str:
    return socket.gethostname()[:100]


def _batches(hashes: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(hashes)
    while some := list(islice(rest, AT_ONCE)):
        yield some
