"""What the exit codes of `trainhub` mean. Those of runs are those of `manage.py submit`."""

from __future__ import annotations

from collections.abc import Iterable

COMPLETED, FAILED, REFUSED, UNREACHABLE = 0, 1, 2, 3
# As shells say it of a program that Ctrl-C, or the end of a pipe, has ended.
CANCELED = INTERRUPTED = 130
BROKEN_PIPE = 141

_OF_STATE = {"Completed": COMPLETED, "Failed": FAILED, "Canceled": CANCELED}


def of_state(state: str) -> int:
    return _OF_STATE.get(state, FAILED)


def of_states(states: Iterable[str]) -> int:
    """Returns the worst: failed, else canceled, else completed."""
    codes = {of_state(state) for state in states}
    return next((code for code in (FAILED, CANCELED) if code in codes), COMPLETED)


def of_error(error: Exception) -> int:
    from trainhub_sdk.errors import HubUnreachable, RunFailed

    if isinstance(error, HubUnreachable):
        return UNREACHABLE
    if isinstance(error, RunFailed):
        return of_state(error.run.state)
    return REFUSED
