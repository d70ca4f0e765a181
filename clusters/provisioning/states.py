"""The words of a provided machine's life, and the transitions that are allowed. Pure."""

from __future__ import annotations

from enum import StrEnum


class MachineState(StrEnum):
    """`provisioning` and `releasing`: the provider is being asked, or is to be asked again at
    `try_again_at`."""

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
"""From -> allowed to. Only one that was never asked of the provider goes without being released."""

STARTING = frozenset({_S.WANTED, _S.PROVISIONING, _S.JOINING})
LEAVING = frozenset({_S.RELEASING, _S.GONE, _S.FAILED})
FINISHED = frozenset({_S.GONE, _S.FAILED})
