"""Reads the failure of a process from its stored log: from the end, and if that shows no traceback, from the
last one in the whole log."""

from __future__ import annotations

import re
from dataclasses import replace

from jobs.causes.log_diagnosis import LogDiagnosis, diagnose_log
from jobs.causes.log_lines import MAX_LINES, TRACEBACK
from jobs.logs import log_store

# The last traceback of a rank, with the output of other threads after it.
LONG_TAIL_BYTES = 256 * 1024
SHORT_TAIL_BYTES = 64 * 1024
# With more ranks than this, shorter log tails are read.
MAX_LONG_TAILS = 16
# How far above the end a traceback is searched, in pieces that overlap by the length of its first line.
MAX_SEARCHED_BYTES = 1024**3
PIECE_BYTES = 4 * 1024 * 1024
# What is read of a log around a traceback in its middle, in bytes and lines: before it stands its chain.
AROUND_BYTES = 64 * 1024
AROUND_LINES = MAX_LINES // 2
_LINE_BREAK = re.compile(rb"[\r\n]")


def diagnose(
    run_id: str,
    attempt: int,
    log: str,
    limit: int = LONG_TAIL_BYTES,
    *,
    launcher: bool = False,
    whole_log: bool = False,
) -> LogDiagnosis:
    """Returns the diagnosis of the last `limit` bytes of a log. `launcher`: several processes write into it.

    `whole_log`: where these show no error, the last traceback before them counts, at most MAX_SEARCHED_BYTES
    above the end."""
    size = log_store.size(run_id, attempt, log)
    start = max(0, size - limit)
    diagnosis = _diagnose_tail(run_id, attempt, log, start, limit, launcher=launcher)
    if not whole_log or diagnosis.exception:
        return diagnosis
    heading = _last_traceback(run_id, attempt, log, size)
    if heading is None:
        return diagnosis
    text, begin = _around(run_id, attempt, log, heading)
    earlier = diagnose_log(text, begin, launcher=launcher)
    return replace(earlier, child=diagnosis.child, is_far=True) if earlier.raised else diagnosis


def _around(run_id: str, attempt: int, log: str, heading: int) -> tuple[bytes, int]:
    """Returns the lines around the offset `heading`, and where they begin."""
    before = log_store.read(run_id, attempt, log, max(0, heading - AROUND_BYTES), min(heading, AROUND_BYTES))
    after = log_store.read(run_id, attempt, log, heading, AROUND_BYTES)
    before = b"".join(before.splitlines(keepends=True)[-AROUND_LINES:])
    after = b"".join(after.splitlines(keepends=True)[:AROUND_LINES])
    return before + after, heading - len(before)


def _diagnose_tail(
    run_id: str, attempt: int, log: str, start: int, limit: int, *, launcher: bool
) -> LogDiagnosis:
    text = log_store.read(run_id, attempt, log, start, limit)
    if start:
        # It begins inside a line, which is dropped unless it is the only one. A progress bar separates what
        # it draws by carriage returns.
        line_break = _LINE_BREAK.search(text)
        first = line_break.end() if line_break else 0
        text, start = text[first:], start + first
    return diagnose_log(text, start, launcher=launcher)


def _last_traceback(run_id: str, attempt: int, log: str, end: int) -> int | None:
    """Returns the offset of the last traceback's heading before `end`, or None."""
    lowest = max(0, end - MAX_SEARCHED_BYTES)
    while end > lowest:
        begin = max(lowest, end - PIECE_BYTES)
        at = log_store.read(run_id, attempt, log, begin, end - begin).rfind(TRACEBACK)
        if at >= 0:
            return begin + at
        # A heading that lies across the border is whole in the next piece.
        end = begin + len(TRACEBACK) - 1 if begin > lowest else lowest
    return None
