"""Limits how many files of datastores the hub reads at once: each takes a process and a connection."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MAX_READS, MAX_READS_OF_WORKSPACE = 8, 4
# So long a download waits for another one to end.
MAX_WAIT_S, POLL_S = 10.0, 0.2
# By the workspace's id. Only the event loop changes it.
_reads: Counter[int] = Counter()


class TooManyReads(Exception):
    """The hub reads as many files as it may; the message is a sentence."""


@asynccontextmanager
async def hold_read_slot(workspace_id: int) -> AsyncIterator[None]:
    """Counts a read until it is over. Raises TooManyReads if there is no room within MAX_WAIT_S."""
    deadline = time.monotonic() + MAX_WAIT_S
    while not _has_room(workspace_id):
        if time.monotonic() >= deadline:
            raise TooManyReads(
                f"The hub reads as many files of datastores as it may: {MAX_READS} at once, "
                f"{MAX_READS_OF_WORKSPACE} of a workspace. Try again soon."
            )
        await asyncio.sleep(POLL_S)
    _reads[workspace_id] += 1
    try:
        yield
    finally:
        _reads[workspace_id] -= 1


def _has_room(workspace_id: int) -> bool:
    return _reads.total() < MAX_READS and _reads[workspace_id] < MAX_READS_OF_WORKSPACE
