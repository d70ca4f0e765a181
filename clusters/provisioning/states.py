"""The states of a provided machine, and the allowed transitions."""

from __future__ import annotations

from enum import StrEnum


class MachineState(StrEnum):
    """The state of a provided machine. In `provisioning` and `releasing` a call to the provider runs, or the
    next try is at `try_again_at`."""

    # Rows and the API contain the values, so a value stays when its name here changes.
    REQUESTED = "wanted"
    PROVISIONING = "provisioning"
    JOINING = "joining"
    UP = "up"
    RELEASING = "releasing"
    RELEASED = "gone"
    FAILED = "failed"


_S = MachineState
# State -> allowed next states. A machine is gone without a release only if the provider was never called.
TRANSITIONS: dict[MachineState, frozenset[MachineState]] = {
    _S.REQUESTED: frozenset({_S.PROVISIONING, _S.RELEASING, _S.RELEASED}),
    _S.PROVISIONING: frozenset({_S.REQUESTED, _S.JOINING, _S.RELEASING}),
    _S.JOINING: frozenset({_S.UP, _S.RELEASING}),
    _S.UP: frozenset({_S.RELEASING}),
    _S.RELEASING: frozenset({_S.REQUESTED, _S.RELEASED, _S.FAILED}),
    _S.RELEASED: frozenset(),
    _S.FAILED: frozenset(),
}

STARTING = frozenset({_S.REQUESTED, _S.PROVISIONING, _S.JOINING})
LEAVING = frozenset({_S.RELEASING, _S.RELEASED, _S.FAILED})
FINISHED = frozenset({_S.RELEASED, _S.FAILED})
