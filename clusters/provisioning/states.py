"""The states of a provided machine, and the allowed transitions."""

from __future__ import annotations

from enum import StrEnum


class MachineState(StrEnum):
    """In `provisioning` and `releasing` a call to the provider runs, or the next try is at `try_again_at`."""

    WANTED = "wanted"
    PROVISIONING = "provisioning"
    JOINING = "joining"
    UP = "up"
    RELEASING = "releasing"
    GONE = "gone"
    FAILED = "failed"


_S = MachineState
TRANSITIONS: dict[MachineState, frozenset[MachineState]] = {
    _S.WANTED: frozenset({_S.PROVISIONING, _S.RELEASING, _S.GONE}),
    _S.PROVISIONING: frozenset({_S.WANTED, _S.JOINING, _S.RELEASING}),
    _S.JOINING: frozenset({_S.UP, _S.RELEASING}),
    _S.UP: frozenset({_S.RELEASING}),
    _S.RELEASING: frozenset({_S.WANTED, _S.GONE, _S.FAILED}),
    _S.GONE: frozenset(),
    _S.FAILED: frozenset(),
}
"""State -> allowed next states. A machine is gone without a release only if the provider was never called."""

STARTING = frozenset({_S.WANTED, _S.PROVISIONING, _S.JOINING})
LEAVING = frozenset({_S.RELEASING, _S.GONE, _S.FAILED})
FINISHED = frozenset({_S.GONE, _S.FAILED})
