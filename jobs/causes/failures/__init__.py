"""All known failures. `docs/failures.md` is generated from them, and a test compares both."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.causes.failures.memory import KILLED, MEMORY, STARVED
from jobs.causes.failures.network import NETWORK
from jobs.causes.failures.row import FailureMatch, FailurePattern
from jobs.causes.failures.scripts import SCRIPTS
from jobs.causes.failures.software import SOFTWARE

HUNG = FailurePattern(
    "hung",
    "The run stopped making progress",
    "the time limit, after a long silence of all ranks",
    (
        "When the time limit ended the run, no rank had written output for a long time. Most often "
        "the ranks were waiting for each other."
    ),
    (
        "Compare the last lines of all ranks: the others probably wait for the rank whose lines "
        "differ. While a run is hanging, `py-spy dump --pid PID` shows where a process is."
    ),
)
# The first pattern that matches wins, so patterns for special cases come before general ones.
GROUPS: Mapping[str, tuple[FailurePattern, ...]] = {
    "Memory, disk and devices": (STARVED, KILLED, *MEMORY),
    "Communication between processes": (*NETWORK, HUNG),
    "The environment": SOFTWARE,
    "The script": SCRIPTS,
}
FAILURES = tuple(row for rows in GROUPS.values() for row in rows)
LINKS = ("", "environments", "node")
_BY_SIGNAL = {number: row for row in FAILURES for number in row.signals}

__all__ = [
    "FAILURES",
    "GROUPS",
    "HUNG",
    "KILLED",
    "LINKS",
    "STARVED",
    "FailureMatch",
    "FailurePattern",
    "match_line",
    "match_signal",
]


def match_line(line: str) -> FailureMatch | None:
    """Returns the first known failure whose pattern matches the line, or None."""
    return next((match for row in FAILURES if (match := row.match(line))), None)


def match_signal(number: int) -> FailureMatch | None:
    row = _BY_SIGNAL.get(number)
    return FailureMatch(row) if row else None
