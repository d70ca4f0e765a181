"""The logs of a run as text, also while it runs."""

from __future__ import annotations

import codecs
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import ConnectionBroken, NotFound
from trainhub_sdk.records.runs import RunLog
from trainhub_sdk.states import is_final, is_waiting

if TYPE_CHECKING:
    from trainhub_sdk.run import Run

# The hub answers after so long even if nothing was written.
WAIT_S = 15
# Between two questions to a hub that does not wait, about a run that has no log yet, or about very many logs.
PAUSE_S = 1.0
# The hub is asked about so many logs at once, by a connection each; more of them are asked about in turn.
MAX_AT_ONCE = 16
# The last lines are looked for in so much of the end of a log, and then in ever more.
FIRST_BLOCK_BYTES = 64 * 1024


class LogText(NamedTuple):
    """A part of a log. `rank`: None for a log of no rank."""

    log: str
    rank: int | None
    attempt: int
    text: str


class _Reader:
    """Reads one log on from where it is."""

    def __init__(self, api: ApiConnection, log: RunLog, attempt: int) -> None:
        self._api = api
        self._log = log
        self._attempt = attempt
        self.offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.is_complete = False

    @property
    def size(self) -> int:
        """How many bytes the log had when it was listed."""
        return self._log.size

    def read(self, wait_s: float = 0) -> str:
        """Returns what was written since; waits so long for it."""
        query = {"offset": self.offset, **({"wait_s": wait_s} if wait_s else {})}
        try:
            answer = self._api.open("GET", self._log.url, query=query, timeout=wait_s + 30)
            content = answer.read()
        except ConnectionBroken:
            # The hub restarts, perhaps; a new request waits for it.
            answer = self._api.open("GET", self._log.url, query={"offset": self.offset})
            content = answer.read()
        self.offset += len(content)
        self.is_complete = answer.headers.get("X-Log-Complete") == "true" and self.offset >= int(
            answer.headers.get("X-Log-Size") or 0
        )
        return self._decoder.decode(content, self.is_complete)

    def skip_to_last_lines(self, count: int) -> None:
        """Goes to where the last `count` lines begin of those that the log holds now."""
        size, block = self._log.size, FIRST_BLOCK_BYTES
        self.offset = size
        while count > 0 and self.offset > 0:
            start = max(0, size - block)
            query = {"offset": start, "limit": size - start}
            content = self._api.open("GET", self._log.url, query=query).read()
            first = _start_of_last_lines(content, count)
            if first is not None or start == 0:
                self.offset = start + (first or 0)
                return
            block *= 4

    def named(self, text: str) -> LogText:
        return LogText(self._log.name, self._log.rank, self._attempt, text)


def read_logs(
    run: Run, rank: int | None = None, *, every_rank: bool = False, last_lines: int | None = None
) -> Iterator[LogText]:
    """Yields what the logs of the newest attempt hold now: that of `rank`, by default the first one; with
    `last_lines` only so many lines of each. Raises HubUnreachable and HubRefused."""
    for reader in _readers(run, run.log_list(), rank, every_rank=every_rank):
        if last_lines is not None:
            reader.skip_to_last_lines(last_lines)
        while text := reader.read():
            yield reader.named(text)


def follow_logs(
    run: Run,
    rank: int | None = None,
    *,
    every_rank: bool = False,
    last_lines: int | None = None,
    deadline: float = math.inf,
    while_waiting: Callable[[], object] | None = None,
) -> Iterator[LogText]:
    """Yields what the logs hold (with `last_lines` only so many lines of each) and what is written to them,
    until the run has ended, or until `deadline` (of time.monotonic); a retry goes on with the logs of the
    next attempt. With `while_waiting` the logs of the preparation come first, if the first rank has written
    nothing yet, and it is called whenever the run was fetched until then. Raises HubUnreachable and
    HubRefused."""
    done = 0
    while time.monotonic() < deadline:
        run.refresh()
        if while_waiting is not None:
            while_waiting()
        logs = run.log_list() if run.attempt > done else []
        readers = list(_readers(run, logs, rank, every_rank=every_rank))
        if not readers:
            if is_final(run.state):
                return
            time.sleep(PAUSE_S)
            continue
        if last_lines is not None and not done:
            for reader in readers:
                reader.skip_to_last_lines(last_lines)
        attempt = run.attempt
        if while_waiting is not None and not readers[0].size:
            yield from _follow_preparation(run, readers[0], deadline, while_waiting)
        yield from _follow(run, readers, attempt, deadline)
        done = attempt


def _follow_preparation(
    run: Run, first: _Reader, deadline: float, while_waiting: Callable[[], object]
) -> Iterator[LogText]:
    """Yields what the head node writes about its preparation, until the first rank has written something."""
    attempt, text = run.attempt, ""
    readers: dict[str, _Reader] = {}
    is_over = False
    while not (is_over or text) and time.monotonic() < deadline:
        run.refresh()
        while_waiting()
        # What was written before the state changed is read below.
        is_over = run.attempt != attempt or not is_waiting(run.state)
        for log in run.log_list() if run.attempt == attempt else ():
            # The script's own files, and the logs of other nodes, are in folders.
            if log.rank is None and "/" not in log.name:
                reader = readers.setdefault(log.name, _Reader(run.api, log, attempt))
                if log.size > reader.offset and (news := reader.read()):
                    yield reader.named(news)
        if not is_over:
            text = first.read(PAUSE_S)
    if text:
        yield first.named(text)


def _follow(run: Run, readers: list[_Reader], attempt: int, deadline: float) -> Iterator[LogText]:
    if 1 < len(readers) <= MAX_AT_ONCE:
        yield from _LogThreads(readers, deadline).follow(run, attempt)
        return
    while readers and (started_at := time.monotonic()) < deadline:
        wait_s = round(min(WAIT_S, deadline - started_at), 3) if len(readers) == 1 else 0
        texts = [(reader, reader.read(wait_s)) for reader in readers]
        for reader, text in texts:
            if text:
                yield reader.named(text)
        readers = [reader for reader in readers if not reader.is_complete]
        if not readers or any(text for _, text in texts):
            continue
        run.refresh()
        if run.attempt != attempt or is_final(run.state):
            # Nothing more is written; what was is read above, or now.
            for reader in readers:
                if text := reader.read():
                    yield reader.named(text)
            return
        time.sleep(max(0.0, PAUSE_S - (time.monotonic() - started_at)))


class _LogThreads:
    """Reads several logs at once, so that each is there as soon as it is written."""

    def __init__(self, readers: list[_Reader], deadline: float) -> None:
        self._readers = readers
        self._deadline = deadline
        # What was read, "" for nothing, None at the end of a log; who reads slowly holds the threads up.
        self._parts: queue.Queue[tuple[_Reader, str | Exception | None]] = queue.Queue(len(readers))
        # `_end`: nothing more is written; `_close`: nobody reads any more.
        self._end, self._close = threading.Event(), threading.Event()

    def follow(self, run: Run, attempt: int) -> Iterator[LogText]:
        for reader in self._readers:
            threading.Thread(target=self._read_all, args=(reader,), daemon=True).start()
        left = len(self._readers)
        try:
            while left:
                reader, part = self._parts.get()
                if isinstance(part, Exception):
                    raise part
                if part is None:
                    left -= 1
                elif part:
                    yield reader.named(part)
                elif not self._end.is_set():
                    run.refresh()
                    if run.attempt != attempt or is_final(run.state):
                        self._end.set()
        finally:
            self._close.set()

    def _read_all(self, reader: _Reader) -> None:
        try:
            while not (reader.is_complete or self._end.is_set() or self._close.is_set()):
                rest_s = self._deadline - time.monotonic()
                if rest_s <= 0:
                    break
                began = time.monotonic()
                text = reader.read(round(min(WAIT_S, rest_s), 3))
                self._put(reader, text)
                if not text and not reader.is_complete:
                    # A hub that does not wait is asked again after a while.
                    self._end.wait(min(rest_s, PAUSE_S - (time.monotonic() - began)))
            if self._end.is_set() and not reader.is_complete:
                self._put(reader, reader.read())
            self._put(reader, None)
        except Exception as error:
            self._put(reader, error)

    def _put(self, reader: _Reader, part: str | Exception | None) -> None:
        while not self._close.is_set():
            try:
                self._parts.put((reader, part), timeout=PAUSE_S)
                return
            except queue.Full:
                continue


def _start_of_last_lines(content: bytes, count: int) -> int | None:
    """Returns where the last `count` lines begin, None if there are not so many whole ones."""
    end = len(content) - 1
    for _ in range(count):
        end = content.rfind(b"\n", 0, max(0, end))
        if end < 0:
            return None
    return end + 1


def _readers(run: Run, logs: list[RunLog], rank: int | None, *, every_rank: bool) -> Iterator[_Reader]:
    of_ranks = [log for log in logs if log.rank is not None] or logs
    if rank is not None:
        of_ranks = [log for log in of_ranks if log.rank == rank]
        ranks = sorted(log.rank for log in logs if log.rank is not None)
        # Before there is a plan, nobody knows which ranks there will be.
        if ranks and not of_ranks:
            raise NotFound(404, f"Run {run.number} has no rank {rank}: it has {ranks[0]} to {ranks[-1]}.", {})
    for log in of_ranks if every_rank or rank is not None else of_ranks[:1]:
        yield _Reader(run.api, log, run.attempt)
