"""Following a run from a terminal: its states and, as they arrive, the lines of its ranks."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.logs import log_store
from jobs.models import Member, Run
from jobs.states import FINAL

POLL_S = 0.15
LATE_BYTES_S = 10.0
"""How long an ended run may still be sending its last bytes."""
CHUNK_BYTES = 256 * 1024
Write = Callable[[str], object]


@dataclass
class _Tail:
    """What has been shown of one log. Bytes that are no UTF-8 are shown as the replacement character."""

    prefix: str
    offset: int = 0
    rest: str = ""
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def take(self, data: bytes, *, last: bool = False) -> str:
        """The lines that `data` completes, each with the prefix; unprefixed text need not wait for its line's
        end."""
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


class Follower:
    """`out` gets the ranks' output, `note` a line for every change of state."""

    def __init__(self, run_id: str, *, out: Write, note: Write) -> None:
        self._run_id = run_id
        self._out = out
        self._note = note
        self._attempt = 0
        self._tails: dict[str, _Tail] = {}
        self._said: tuple[str, str] = ("", "")

    def until_the_end(self) -> Run:
        """The run as it ended, all of its output shown."""
        while True:
            # The state first: what arrives after it was read is shown by the next round.
            run = Run.objects.get(pk=self._run_id)
            self._begin(run)
            self._say(run)
            has_shown = self._show()
            if run.state in FINAL:
                self._drain()
                return run
            if not has_shown:
                time.sleep(POLL_S)

    def _begin(self, run: Run) -> None:
        if run.attempt == self._attempt:
            return
        if self._attempt:
            self._drain()
        self._attempt = run.attempt
        members = Member.objects.filter(attempt__run=run, attempt__number=run.attempt)
        several = len(members) > 1
        width = len(str(len(members) - 1))
        self._tails = {
            member.log_name: _Tail(f"[{member.rank:>{width}}] " if several else "") for member in members
        }

    def _say(self, run: Run) -> None:
        saying = (run.state, run.sentence)
        if saying == self._said:
            return
        self._said = saying
        self._note(f"{run.state}: {run.sentence}" if run.sentence else run.state)

    def _show(self, *, last: bool = False) -> bool:
        has_shown = False
        for name, tail in self._tails.items():
            while data := log_store.read(self._run_id, self._attempt, name, tail.offset, CHUNK_BYTES):
                self._write(tail.take(data))
                has_shown = True
            if last:
                self._write(tail.take(b"", last=True))
        return has_shown

    def _write(self, text: str) -> None:
        if text:
            self._out(text)

    def _drain(self) -> None:
        """A lost node's last bytes never come, so there is an end to waiting for them."""
        deadline = time.monotonic() + LATE_BYTES_S
        while self._show() or not self._is_complete():
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        self._show(last=True)

    def _is_complete(self) -> bool:
        begun = [name for name, tail in self._tails.items() if tail.offset]
        return all(log_store.complete(self._run_id, self._attempt, name) for name in begun)
