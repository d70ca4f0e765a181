"""What of the logs is not shipped to a target yet, as lines in the order of their time."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from jobs.log_shipping.line_reader import LineReader, LogSource, SourceLine
from jobs.log_shipping.models import LogProgress
from jobs.logs import log_store
from jobs.models import Member
from trainhub_launch.log_names import DRIVER_LOG, ENVIRONMENT_LOG, LAUNCHER_LOG, PREPARATION_LOG

log = logging.getLogger(__name__)
MAX_BATCH_BYTES = 2**20
MAX_BATCH_LINES = 5_000
# Logs are read in turns of so much of their time at most: a log system refuses lines that are much older than
# others it has, Loki by an hour.
TURN_NS = 10 * 60 * 1_000_000_000
DRIVER = "driver"
STREAMS = {ENVIRONMENT_LOG: "environment", PREPARATION_LOG: "preparation", LAUNCHER_LOG: "launcher"}


class UnshippedLines:
    """The lines that wait now: of the attempts in `progress`, as far as they are stored at this moment."""

    def __init__(self, progress: Iterable[LogProgress], max_line_bytes: int) -> None:
        self._readers: list[tuple[int, int, LineReader]] = []
        self._progress_of: dict[LogSource, LogProgress] = {}
        # Logs that have something new, with their stored sizes.
        sizes = {item: new for item in progress if (new := _new_sizes(item))}
        members: dict[tuple[int, str], Member] = {
            (member.attempt_id, member.log_name): member
            for member in Member.objects.filter(attempt__in=[item.attempt_id for item in sizes])
            .select_related("node")
            .only("attempt_id", "log_name", "rank", "node__name")
        }
        for item, stored in sizes.items():
            is_over = _names_over(item, stored)
            for name in stored:
                source = _source(item, name, members.get((item.attempt_id, name)))
                self._progress_of[source] = item
                try:
                    begin = item.offsets.get(name, 0)
                    reader = LineReader(source, begin, is_over=name in is_over, max_line_bytes=max_line_bytes)
                except FileNotFoundError:
                    _note_purge(source)
                else:
                    self._push(reader)

    @property
    def waiting_bytes(self) -> int:
        return sum(reader.size - reader.at for _, _, reader in self._readers)

    @property
    def oldest_at(self) -> datetime | None:
        """Returns when the oldest line that waits arrived here; None if none does."""
        return datetime.fromtimestamp(self._readers[0][0] / 1e9, UTC) if self._readers else None

    def progress_of(self, source: LogSource) -> LogProgress:
        return self._progress_of[source]

    def next_lines(self, max_bytes: int = MAX_BATCH_BYTES) -> list[SourceLine]:
        """Returns the lines of the next request, those of each log in their order; [] if none waits."""
        lines: list[SourceLine] = []
        while self._readers and max_bytes > 0 and len(lines) < MAX_BATCH_LINES:
            _, _, reader = heapq.heappop(self._readers)
            until_ns = (self._readers[0][0] if self._readers else reader.next_ns) + TURN_NS
            before = reader.at
            try:
                lines += reader.read_lines(until_ns, max_bytes, MAX_BATCH_LINES - len(lines))
            except FileNotFoundError:
                _note_purge(reader.source)
                continue
            if reader.at > before:
                max_bytes -= reader.at - before
                self._push(reader)
        return lines

    def _push(self, reader: LineReader) -> None:
        if reader.at < reader.size:
            heapq.heappush(self._readers, (reader.next_ns, id(reader), reader))


def stream_of(name: str) -> str:
    """Returns what kind of log this is: one of few words, because each is a stream of Loki. "" for a file
    that is not shipped."""
    file = name.rpartition("/")[2]
    if name.startswith(("logs/", "outputs/")):
        return ""
    return DRIVER if file.startswith(DRIVER_LOG) else STREAMS.get(file, "")


def _note_purge(source: LogSource) -> None:
    log.info("%s of run %s was purged before it was shipped", source.log, source.run)


def _new_sizes(progress: LogProgress) -> dict[str, int]:
    """Returns the stored sizes of the logs of an attempt that have something new. Files that a script writes
    below logs/ are left out: secrets in them are not masked."""
    attempt = progress.attempt
    return {
        name: size
        for name, size in log_store.log_sizes(attempt.run_id, attempt.number).items()
        if size > progress.offsets.get(name, 0) and stream_of(name)
    }


def _names_over(progress: LogProgress, stored: dict[str, int]) -> set[str]:
    """Returns the logs that will not grow any more."""
    attempt = progress.attempt
    if attempt.ended_at is not None and all(part.settled_at for part in attempt.parts.all()):
        return set(stored)
    return log_store.complete_logs(attempt.run_id, attempt.number, stored)


def _source(progress: LogProgress, name: str, member: Member | None) -> LogSource:
    run = progress.attempt.run
    if member is not None:
        node = member.node.name
    else:
        # A log of a node in a run on several is in a folder node_N.
        number = int(name.partition("/")[0].removeprefix("node_")) if "/" in name else 0
        parts = {part.node_rank: part.node.name for part in progress.attempt.parts.all()}
        node = parts.get(number, "")
    return LogSource(
        workspace=run.workspace.slug,
        experiment=run.experiment.name,
        run=run.pk,
        number=run.number,
        attempt=progress.attempt.number,
        log=name,
        stream=stream_of(name),
        node=node,
        rank=None if member is None else member.rank,
    )
