"""Evidence about the end of one rank: its node's report and the end of its log. Pure."""

from __future__ import annotations

import dataclasses
import signal
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from jobs.causes import failures
from jobs.causes.failures import FailureMatch
from jobs.causes.log_diagnosis import LogDiagnosis
from jobs.states import MemberState

# For a process that was stopped or killed, an exception counts only if it is at most this many lines before
# the end of the log.
MAX_DISTANCE = 25
# A shell reports the signal that ended its child as exit code 128 + number.
SHELL_SIGNAL_BASE = 128
SHELL_SIGNALS = frozenset(
    {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV}
)


class EvidenceWeight(IntEnum):
    """How well a rank's end explains the failure; the lowest value is the cause."""

    # In the order of preference; `choose` sorts by the value.
    OWN = 0
    PLAIN = 1
    ECHO = 2
    NOTHING = 3


@dataclass(frozen=True)
class RankEvidence:
    """A rank as its node reported it. `ended_at` is by the hub's clock."""

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
        """Returns the signal that ended the rank, also if a shell reported it as an exit code, or None."""
        if (
            self.signal is None
            and self.exit_code is not None
            and self.exit_code - SHELL_SIGNAL_BASE in SHELL_SIGNALS
        ):
            return self.exit_code - SHELL_SIGNAL_BASE
        return self.signal


@dataclass(frozen=True)
class Evidence:
    """A rank, the diagnosis of its log, and the known failure that matches its end. `logged_at`: when the hub
    received the traceback, by the hub's clock; None if that is not known."""

    rank: RankEvidence
    diagnosis: LogDiagnosis
    match: FailureMatch | None
    weight: EvidenceWeight
    logged_at: datetime | None = None

    @property
    def at(self) -> datetime | None:
        """The earliest time at which the rank's error is known to have existed."""
        # A rank may take seconds to end after its error, and the lines may arrive after the end.
        return min(filter(None, (self.rank.ended_at, self.logged_at)), default=None)

    @property
    def is_known(self) -> bool:
        """Whether the log, or the kernel's count of kills, names a known failure."""
        return self.rank.out_of_memory or self.diagnosis.match is not None

    @property
    def agrees(self) -> bool:
        """Whether the rank ended as its exception ends a process: Python exits with 1, C++ aborts."""
        rank, diagnosis = self.rank, self.diagnosis
        if not diagnosis.raised or rank.state != MemberState.FAILED or diagnosis.child is not None:
            return True
        if diagnosis.is_far:
            return False
        # A launcher passes on the exit code of its own child.
        return rank.role == "launcher" or rank.exit_code == 1 or rank.end_signal == signal.SIGABRT


def weigh(rank: RankEvidence, diagnosis: LogDiagnosis) -> Evidence:
    if rank.state != MemberState.FAILED:
        return _weigh_unfailed(rank, diagnosis)
    # The exit code of a launcher hides the signal; torchrun reports it as a negative code of its child.
    number = rank.end_signal or _child_signal(diagnosis)
    if rank.out_of_memory:
        return Evidence(
            rank, _without_exception(diagnosis), FailureMatch(failures.STARVED), EvidenceWeight.OWN
        )
    # SIGKILL cannot be caught, so nothing that the log says can be what the process knew about its end.
    if number == signal.SIGKILL:
        return Evidence(
            rank, _without_exception(diagnosis), FailureMatch(failures.KILLED), EvidenceWeight.OWN
        )
    if number is not None:
        return _weigh_signal(rank, diagnosis, number)
    # The process has survived an exception far above the end, unless it exited as Python does after one.
    if diagnosis.is_far and rank.exit_code != 1:
        diagnosis = _without_exception(diagnosis)
    if not diagnosis.exception:
        return Evidence(rank, diagnosis, None, EvidenceWeight.PLAIN)
    if diagnosis.is_far and not diagnosis.is_echo:
        return Evidence(rank, diagnosis, diagnosis.match, EvidenceWeight.PLAIN)
    return Evidence(
        rank, diagnosis, diagnosis.match, EvidenceWeight.ECHO if diagnosis.is_echo else EvidenceWeight.OWN
    )


def _weigh_unfailed(rank: RankEvidence, diagnosis: LogDiagnosis) -> Evidence:
    """Weighs a rank that was stopped or still runs: it may have raised an exception before it exited."""
    # A stopped rank may have raised its exception while the stop signal was on its way.
    if diagnosis.raised and diagnosis.distance <= MAX_DISTANCE and not diagnosis.is_echo:
        return Evidence(rank, diagnosis, diagnosis.match, EvidenceWeight.OWN)
    match = diagnosis.match if diagnosis.raised and diagnosis.is_echo else None
    return Evidence(rank, diagnosis, match, EvidenceWeight.ECHO if match else EvidenceWeight.NOTHING)


def _weigh_signal(rank: RankEvidence, diagnosis: LogDiagnosis, number: int) -> Evidence:
    """Weighs a rank that a signal ended: by an exception right before it, else by the signal's usual
    cause."""
    if diagnosis.exception and diagnosis.distance <= MAX_DISTANCE:
        return Evidence(
            rank, diagnosis, diagnosis.match or failures.match_signal(number), _weight(diagnosis.match)
        )
    match = failures.match_signal(number)
    # These signals say that something ended the process, but nothing about an error of the process itself.
    from_outside = number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return Evidence(
        rank,
        _without_exception(diagnosis),
        match,
        EvidenceWeight.PLAIN if from_outside else EvidenceWeight.OWN,
    )


def _weight(match: FailureMatch | None) -> EvidenceWeight:
    return EvidenceWeight.ECHO if match is not None and match.failure.echo else EvidenceWeight.OWN


def _child_signal(diagnosis: LogDiagnosis) -> int | None:
    return (
        -diagnosis.child.exit_code if diagnosis.child is not None and diagnosis.child.exit_code < 0 else None
    )


def _without_exception(diagnosis: LogDiagnosis) -> LogDiagnosis:
    """Returns the diagnosis with its quote only: the exception in the log is not what ended the rank."""
    return dataclasses.replace(diagnosis, exception="", began="", match=None, raised=False)
