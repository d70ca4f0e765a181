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
LEFT_EARLY = FailurePattern(
    "left_early",
    "A rank ended before the others",
    "a rank ended with exit code 0, and then others lost their connection or waited until their timeout",
    "The rank left its loop while the others still expected it in a collective operation.",
    (
        "Let every rank take the same number of steps: the same number of batches (drop_last, "
        "DistributedSampler, torch's Join), no `break` or `sys.exit` on one rank only. Its last lines show "
        "how far it came."
    ),
)
NEVER_ARRIVED = FailurePattern(
    "never_arrived",
    "A rank did not take part",
    "the others waited in a collective operation until its timeout, and one rank reports none",
    "The rank was somewhere else in the script, or stood still, while the others waited for it.",
    (
        "See in its last lines where it was: a branch for one rank only, an endless loop, slow data. Set a "
        "longer timeout in init_process_group only if the work is really uneven."
    ),
)
# The first pattern that matches wins, so patterns for special cases come before general ones.
GROUPS: Mapping[str, tuple[FailurePattern, ...]] = {
    "Memory, disk and devices": (STARVED, KILLED, *MEMORY),
    "Communication between processes": (*NETWORK, LEFT_EARLY, NEVER_ARRIVED, HUNG),
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
    "LEFT_EARLY",
    "LINKS",
    "NEVER_ARRIVED",
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
