"""What of the logs is not shipped to a target yet, as lines in the order of their time."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator
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
        self._max_line_bytes = max_line_bytes
        self._readers: list[tuple[int, int, LineReader]] = []
        self._progress_of: dict[LogSource, LogProgress] = {}
        for item in progress:
            for reader in self._readers_of(item):
                self._progress_of[reader.source] = item
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
            lines += reader.read_lines(until_ns, max_bytes, MAX_BATCH_LINES - len(lines))
            if reader.at > before:
                max_bytes -= reader.at - before
                self._push(reader)
        return lines

    def _push(self, reader: LineReader) -> None:
        if reader.at < reader.size:
            heapq.heappush(self._readers, (reader.next_ns, id(reader), reader))

    def _readers_of(self, progress: LogProgress) -> Iterator[LineReader]:
        """Yields the logs of an attempt that have something new. Files that a script writes below logs/ are
        left out: secrets in them are not masked."""
        attempt = progress.attempt
        sizes = {
            name: size
            for name, size in log_store.log_sizes(attempt.run_id, attempt.number).items()
            if stream_of(name) and size > progress.offsets.get(name, 0)
        }
        if not sizes:
            return
        members = {
            member.log_name: member
            for member in Member.objects.filter(attempt=attempt, log_name__in=sizes).select_related("node")
        }
        hosts = {part.node_rank: part.node.name for part in attempt.parts.all()}
        is_settled = attempt.ended_at is not None and all(part.settled_at for part in attempt.parts.all())
        for name in sizes:
            is_over = is_settled or log_store.is_complete(attempt.run_id, attempt.number, name)
            source = _source(progress, name, members.get(name), hosts)
            try:
                yield LineReader(
                    source,
                    progress.offsets.get(name, 0),
                    is_over=is_over,
                    max_line_bytes=self._max_line_bytes,
                )
            except FileNotFoundError:
                log.info("The logs of %s were purged before they were shipped", attempt.run)


def stream_of(name: str) -> str:
    """Returns what kind of log this is: one of few words, because each is a stream of Loki. "" for a file
    that is not shipped."""
    file = name.rpartition("/")[2]
    if name.startswith(("logs/", "outputs/")):
        return ""
    return DRIVER if file.startswith(DRIVER_LOG) else STREAMS.get(file, "")


def _source(progress: LogProgress, name: str, member: Member | None, hosts: dict[int, str]) -> LogSource:
    run = progress.attempt.run
    if member is not None:
        node = member.node.name
    else:
        # A log of a node in a run on several is in a folder node_N.
        folder = name.partition("/")[0] if "/" in name else "node_0"
        node = hosts.get(int(folder.removeprefix("node_")), "")
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
