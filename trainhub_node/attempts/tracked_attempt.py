"""A tracked attempt as the uplink sees it: its fact, its logs, and what the hub already has of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from trainhub_launch.report import MAX_CHUNK_BYTES, AttemptFact, LogChunk
from trainhub_node.attempts.attempt_state import AttemptState
from trainhub_node.attempts.log_mask import LogMask
from trainhub_node.attempts.log_tail import MAX_USER_LOGS, LogTail
from trainhub_node.attempts.watch import FileWatch
from trainhub_node.rundir import RunDir

# Logs up to this size are sent from the beginning: that costs less than asking where to go on.
UNREQUESTED_BYTES = 65536
LOW_DISK_BYTES = 64 * 1024 * 1024


class TrackedAttempt:
    """An attempt with what the hub has received of it. `next_offsets`: log name -> next byte that the hub
    expects. `acknowledged`: the last fact that the hub accepted. `mask_of` returns the mask of its logs, None
    while that is not known."""

    def __init__(
        self, rundir: RunDir, owner: int | None, mask_of: Callable[[RunDir], LogMask | None]
    ) -> None:
        self.rundir = rundir
        self._mask_of = mask_of
        self.state = AttemptState(rundir)
        self.tail = LogTail(rundir, owner)
        self.next_offsets: dict[str, int] = {}
        self.acknowledged: AttemptFact | None = None
        self._is_rescanned = False

    @property
    def lacks_secrets(self) -> bool:
        """Whether its child has secrets that this agent, restarted since, does not know yet. Until then
        nothing of the attempt may be reported, because nothing can be masked."""
        return self._mask_of(self.rundir) is None and self.state.child() is not None

    def fact(self, sizes: Mapping[str, int]) -> AttemptFact:
        """Returns the fact, without secrets in its sentences."""
        fact = self.state.fact(sizes, extra_warnings=tuple(self._warnings()))
        mask = self._mask_of(self.rundir)
        if mask is None or not (fact.error or fact.warnings):
            return fact
        warnings = tuple(mask.mask_sentence(warning) for warning in fact.warnings)
        return replace(fact, error=mask.mask_sentence(fact.error), warnings=warnings)

    def chunks(self, sizes: Mapping[str, int], budget: int) -> Iterator[LogChunk]:
        """Yields what the hub lacks, up to `budget` bytes.

        For a large log whose offset is unknown it yields an empty chunk, which asks the hub for the
        offset. While the secrets of the attempt are not known it yields nothing."""
        mask = self._mask_of(self.rundir)
        if mask is None:
            return
        if self.state.is_over and not self._is_rescanned:
            # What was written in the last moments, after the scan of the folders, must be uploaded, too.
            self._is_rescanned = True
            self.tail.rescan()
        for name, size in sizes.items():
            offset = self.next_offsets.get(name)
            if offset is None and size > UNREQUESTED_BYTES:
                yield LogChunk(self.rundir.run, self.rundir.attempt, name, 0, b"")
                continue
            offset = offset or 0
            if size <= offset or budget <= 0:
                continue
            length = min(size - offset, MAX_CHUNK_BYTES, budget)
            data = self.tail.read(name, offset, length, mask, is_final=self.state.is_over)
            if data:
                budget -= len(data)
                yield LogChunk(self.rundir.run, self.rundir.attempt, name, offset, data)

    def watch(self, watch: FileWatch) -> None:
        for folder in self._folders():
            watch.add(folder)

    def release(self, watch: FileWatch) -> None:
        for folder in self._folders():
            watch.remove(folder)

    def _folders(self) -> tuple[str, ...]:
        rundir = self.rundir
        return rundir.path, rundir.ranks, rundir.logs, f"{rundir.work}/logs"

    def _warnings(self) -> Iterator[str]:
        if self.tail.has_too_many:
            yield (
                f"Only the first {MAX_USER_LOGS} files below logs/ are shown live; all are saved at the end."
            )
        # Asked for with each report: a rank that cannot write its log fails with a message that nobody sees.
        facts = os.statvfs(self.rundir.path)
        if facts.f_bavail * facts.f_frsize < LOW_DISK_BYTES:
            yield "The node's disk is full; logs and outputs may be cut short. Free space there."
