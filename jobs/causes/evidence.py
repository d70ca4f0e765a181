"""What is known of the end of one rank: what its node tells, and what its log says; pure."""

from __future__ import annotations

import dataclasses
import signal
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from jobs.causes import known
from jobs.causes.known import Match
from jobs.causes.log_diagnosis import Saying
from jobs.states import MemberState

CLOSE = 25
"""A process that was ended from outside, or by a signal, was ended by an exception only if that stands this
close to the end."""
OF_SHELLS = 128
"""A shell between us and the program tells its signal as exit code 128 + number."""
SHELL_SIGNALS = frozenset(
    {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV}
)


class Standing(IntEnum):
    """How much a rank's end explains; the lowest is the cause."""

    OWN = 0
    PLAIN = 1
    ECHO = 2
    NOTHING = 3


@dataclass(frozen=True)
class Rank:
    """A rank as its node tells of it. `ended_at` by the hub's clock."""

    rank: int
    local_rank: int
    node: str
    log: str
    state: str
    role: str = ""
    exit_code: int | None = None
    signal: int | None = None
    ended_at: datetime | None = None
    out_of_memory: bool = False

    @property
    def died_of(self) -> int | None:
        """The signal that ended it, also where a shell tells of it."""
        if self.signal is None and self.exit_code is not None and self.exit_code - OF_SHELLS in SHELL_SIGNALS:
            return self.exit_code - OF_SHELLS
        return self.signal


@dataclass(frozen=True)
class Evidence:
    """A rank, what its log says that bears on its end, and how it is known."""

    rank: Rank
    saying: Saying
    match: Match | None
    standing: Standing


def weigh(rank: Rank, saying: Saying) -> Evidence:
    if rank.state != MemberState.FAILED:
        return _of_other(rank, saying)
    number = rank.died_of or _signal_of_child(saying)
    if rank.out_of_memory:
        return Evidence(rank, _quoted(saying), Match(known.STARVED), Standing.OWN)
    if number == signal.SIGKILL:
        return Evidence(rank, _quoted(saying), Match(known.KILLED), Standing.OWN)
    if number is not None:
        return _of_signal(rank, saying, number)
    if not saying.exception:
        return Evidence(rank, saying, None, Standing.PLAIN)
    return Evidence(rank, saying, saying.match, Standing.ECHO if saying.is_echo else Standing.OWN)


def _of_other(rank: Rank, saying: Saying) -> Evidence:
    """A rank that was ended by us, or that still lives, may have raised before, and not have left yet."""
    if saying.raised and saying.distance <= CLOSE and not saying.is_echo:
        return Evidence(rank, saying, saying.match, Standing.OWN)
    match = saying.match if saying.raised and saying.is_echo else None
    return Evidence(rank, saying, match, Standing.ECHO if match else Standing.NOTHING)


def _of_signal(rank: Rank, saying: Saying, number: int) -> Evidence:
    """A signal is explained by what was said right before it, else by what mostly sends it."""
    if saying.exception and saying.distance <= CLOSE:
        return Evidence(rank, saying, saying.match or known.of_signal(number), _standing(saying.match))
    match = known.of_signal(number)
    from_outside = number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return Evidence(rank, _quoted(saying), match, Standing.PLAIN if from_outside else Standing.OWN)


def _standing(match: Match | None) -> Standing:
    return Standing.ECHO if match is not None and match.known.echo else Standing.OWN


def _signal_of_child(saying: Saying) -> int | None:
    return -saying.child.exit_code if saying.child is not None and saying.child.exit_code < 0 else None


def _quoted(saying: Saying) -> Saying:
    """Only its last lines: what it says is not what ended it."""
    return dataclasses.replace(saying, exception="", began="", match=None)
