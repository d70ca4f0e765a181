"""How this machine's clock stands to the hub's: the times of logs and failures come from here."""

from __future__ import annotations

TOLERATED_S = 2.0


def offset_s(hub_time: float, requested_at: float, answered_at: float) -> float:
    """The hub's clock less ours, 0 as far as the way there and back may explain it. All in Unix seconds."""
    half = max(0.0, answered_at - requested_at) / 2
    offset = hub_time - requested_at - half
    return 0.0 if abs(offset) <= half else offset


def warning(offset: float) -> str:
    """What to say of this offset; nothing where it is tolerable."""
    if abs(offset) <= TOLERATED_S:
        return ""
    direction = "behind" if offset > 0 else "ahead of"
    return (
        f"this machine's clock is {abs(offset):.0f} s {direction} the hub's; set it, for example with "
        "`timedatectl set-ntp true`"
    )
