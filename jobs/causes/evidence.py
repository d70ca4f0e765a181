"""What is known of the end of one rank: what its node tells, and what its log says; pure."""

from __future__ import annotations

import dataclasses
import signal
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from jobs.causes import known
from jobs.causes.known import FailureMatch
from jobs.causes.log_diagnosis import LogDiagnosis
from jobs.states import MemberState

MAX_DISTANCE = 25
"""A process that was ended from outside, or by a signal, was ended by an exception only if that stands this
close to the end."""
SHELL_SIGNAL_BASE = 128
"""A shell between us and the program tells its signal as exit code 128 + number."""
SHELL_SIGNALS = frozenset(
    {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV}
)


class EvidenceWeight(IntEnum):
    """How much a rank's end explains; the lowest is the cause."""

    OWN = 0
    PLAIN = 1
    ECHO = 2
    NOTHING = 3


@dataclass(frozen=True)
class RankEvidence:
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
    def end_signal(self) -> int | None:
        """The signal that ended it, also where a shell tells of it."""
        if self.signal is None and self.exit_code is not None and self.exit_code - SHELL_SIGNAL_BASE in SHELL_SIGNALS:
            return self.exit_code - SHELL_SIGNAL_BASE
        return self.signal


@dataclass(frozen=True)
class Evidence:
    """A rank, what its log says that bears on its end, and how it is known."""

    rank: RankEvidence
    diagnosis: LogDiagnosis
    match: FailureMatch | None
    weight: EvidenceWeight


def weigh(rank: RankEvidence, diagnosis: LogDiagnosis) -> Evidence:
    if rank.state != MemberState.FAILED:
        return _weigh_unfailed(rank, diagnosis)
    number = rank.end_signal or _child_signal(diagnosis)
    if rank.out_of_memory:
        return Evidence(rank, _without_exception(diagnosis), FailureMatch(known.STARVED), EvidenceWeight.OWN)
    if number == signal.SIGKILL:
        return Evidence(rank, _without_exception(diagnosis), FailureMatch(known.KILLED), EvidenceWeight.OWN)
    if number is not None:
        return _weigh_signal(rank, diagnosis, number)
    if not diagnosis.exception:
        return Evidence(rank, diagnosis, None, EvidenceWeight.PLAIN)
    return Evidence(rank, diagnosis, diagnosis.match, EvidenceWeight.ECHO if diagnosis.is_echo else EvidenceWeight.OWN)


def _weigh_unfailed(rank: RankEvidence, diagnosis: LogDiagnosis) -> Evidence:
    """A rank that was ended by us, or that still lives, may have raised before, and not have left yet."""
    if diagnosis.raised and diagnosis.distance <= MAX_DISTANCE and not diagnosis.is_echo:
        return Evidence(rank, diagnosis, diagnosis.match, EvidenceWeight.OWN)
    match = diagnosis.match if diagnosis.raised and diagnosis.is_echo else None
    return Evidence(rank, diagnosis, match, EvidenceWeight.ECHO if match else EvidenceWeight.NOTHING)


def _weigh_signal(rank: RankEvidence, diagnosis: LogDiagnosis, number: int) -> Evidence:
    """A signal is explained by what was said right before it, else by what mostly sends it."""
    if diagnosis.exception and diagnosis.distance <= MAX_DISTANCE:
        return Evidence(rank, diagnosis, diagnosis.match or known.match_signal(number), _weight(diagnosis.match))
    match = known.match_signal(number)
    from_outside = number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return Evidence(rank, _without_exception(diagnosis), match, EvidenceWeight.PLAIN if from_outside else EvidenceWeight.OWN)


def _weight(match: FailureMatch | None) -> EvidenceWeight:
    return EvidenceWeight.ECHO if match is not None and match.failure.echo else EvidenceWeight.OWN


def _child_signal(diagnosis: LogDiagnosis) -> int | None:
    return -diagnosis.child.exit_code if diagnosis.child is not None and diagnosis.child.exit_code < 0 else None


def _without_exception(diagnosis: LogDiagnosis) -> LogDiagnosis:
    """Only its last lines: what it says is not what ended it."""
    return dataclasses.replace(diagnosis, exception="", began="", match=None)
