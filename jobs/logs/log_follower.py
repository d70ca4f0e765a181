"""Follows a run in a terminal: prints its states and the lines of its ranks as they arrive."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.logs import log_store
from jobs.models import Member, Run
from jobs.states import FINAL

POLL_S = 0.15
# How long to wait for the last log bytes of an ended run.
LATE_BYTES_S = 10.0
CHUNK_BYTES = 256 * 1024
Write = Callable[[str], object]


@dataclass
class _Tail:
    """Read position in one log. Bytes that are not UTF-8 become the replacement character."""

    prefix: str
    offset: int = 0
    rest: str = ""
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def decode_lines(self, data: bytes, *, last: bool = False) -> str:
        """Returns the lines that `data` completes, each with the prefix.

        Without a prefix incomplete lines are returned as well."""
        self.offset += len(data)
        text = self.rest + self.decoder.decode(data, final=last)
        if not self.prefix:
            self.rest = ""
            return text
        *lines, self.rest = text.split("\n")
        if last and self.rest:
            lines.append(self.rest)
            self.rest = ""
        return "".join(f"{self.prefix}{line}\n" for line in lines)


class LogFollower:
    """Passes the ranks' output to `out`, and a line for every change of state to `note`."""

    def __init__(self, run_id: str, *, out: Write, note: Write) -> None:
        self._run_id = run_id
        self._out = out
        self._note = note
        self._attempt = 0
        self._tails: dict[str, _Tail] = {}
        self._last_status: tuple[str, str] = ("", "")

    def follow_to_end(self) -> Run:
        """Follows the run to its end and returns it."""
        while True:
            # The state is read before the logs, so that output which arrives in between is not missed.
            run = Run.objects.get(pk=self._run_id)
            self._begin(run)
            self._report_status(run)
            has_output = self._write_new()
            if run.state in FINAL:
                self._drain()
                return run
            if not has_output:
                time.sleep(POLL_S)

    def _begin(self, run: Run) -> None:
        if run.attempt == self._attempt:
            return
        # After a retry the last bytes of the attempt before may still be on their way.
        if self._attempt:
            self._drain()
        self._attempt = run.attempt
        members = Member.objects.filter(attempt__run=run, attempt__number=run.attempt)
        several = len(members) > 1
        width = len(str(len(members) - 1))
        self._tails = {
            member.log_name: _Tail(f"[{member.rank:>{width}}] " if several else "") for member in members
        }

    def _report_status(self, run: Run) -> None:
        status = (run.state, run.sentence)
        if status == self._last_status:
            return
        self._last_status = status
        self._note(f"{run.state}: {run.sentence}" if run.sentence else run.state)

    def _write_new(self, *, last: bool = False) -> bool:
        has_output = False
        for name, tail in self._tails.items():
            while data := log_store.read(self._run_id, self._attempt, name, tail.offset, CHUNK_BYTES):
                self._write(tail.decode_lines(data))
                has_output = True
            if last:
                self._write(tail.decode_lines(b"", last=True))
        return has_output

    def _write(self, text: str) -> None:
        if text:
            self._out(text)

    def _drain(self) -> None:
        """Writes the rest of the logs. The wait is limited because a lost node's last bytes never arrive."""
        deadline = time.monotonic() + LATE_BYTES_S
        while self._write_new() or not self._is_complete():
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        self._write_new(last=True)

    def _is_complete(self) -> bool:
        # A rank that has written nothing may never have started, so its log may never be completed.
        names = [name for name, tail in self._tails.items() if tail.offset]
        return all(log_store.is_complete(self._run_id, self._attempt, name) for name in names)
