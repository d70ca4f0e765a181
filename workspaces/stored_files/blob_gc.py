"""Deletes blobs that no row names any more (workspaces.stored_files.blob_names)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice

from workspaces.object_store import rows
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_names import AT_ONCE, named

# A node uploads a file before it can say which run it belongs to, and may be cut off in between.
KEEP_UNNAMED_S = 7 * 86400.0
# A blob that no row names any more is usually garbage. Only a client that has kept it within this time may
# still be about to name it.
UNDER_WAY_S = 3600.0


def sweep(now: float | None = None) -> int:
    """Deletes blobs that no row names and that nobody has written or kept for KEEP_UNNAMED_S; returns how
    many."""
    moment = (time.time() if now is None else now) - KEEP_UNNAMED_S
    files = blobs.unkept_since(moment)
    removed = 0
    while some := list(islice(files, AT_ONCE)):
        # A file that somebody has kept between the two looks is not removed: `drop` looks again.
        names = [file.name for file in some]
        # Copies of what is in the object store go by the rows there, or to make room.
        spared = named(names) | rows.live_hashes(names)
        removed += sum(
            blobs.drop(file, unkept_since=moment) is not None for file in some if file.name not in spared
        )
    objects = rows.unkept_objects(moment)
    while waiting := list(islice(objects, AT_ONCE)):
        spared = named(row.sha256 for row in waiting)
        removed += sum(
            blobs.discard(row.sha256, unkept_since=moment) is not None
            for row in waiting
            if row.sha256 not in spared
        )
    return removed


def free(candidates: Mapping[str, float], now: float | None = None) -> int:
    """Deletes at once blobs that deleted rows have named, unless other rows name them; returns the bytes
    freed.

    `candidates`: hash -> time at which such a row was made (Unix seconds). A blob that somebody has kept
    since then, within the last hour, may be about to be named again: it is left to `sweep`, which deletes it
    an hour later."""
    at = time.time() if now is None else now
    spared = named(candidates)
    freed = 0
    for sha256, stored_at in candidates.items():
        if sha256 not in spared:
            size = blobs.discard(sha256, unkept_since=max(at - UNDER_WAY_S, stored_at))
            freed += size or 0
            if size is None:
                # Its time is set back, as if it had been kept long ago, so that a sweep in an hour or later
                # deletes it.
                blobs.set_stored_time(sha256, at - KEEP_UNNAMED_S + UNDER_WAY_S)
    return freed
