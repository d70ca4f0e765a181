"""How this machine's clock stands to the hub's: the times of logs and failures come from here."""

from __future__ import annotations

TOLERATED_S = 2.0


def offset_s(hub_time: float, asked_at: float, answered_at: float) -> float:
    """The hub's clock less ours, 0 as far as the way there and back may explain it. All in Unix seconds."""
    half = max(0.0, answered_at - asked_at) / 2
    offset = hub_time - asked_at - half
    return 0.0 if abs(offset) <= half else offset


def doubt(offset: float) -> str:
    """What to say of this offset; nothing where it is tolerable."""
    if abs(offset) <= TOLERATED_S:
        return ""
    way = "behind" if offset > 0 else "ahead of"
    return (
        f"this machine's clock is {abs(offset):.0f} s {way} the hub's; set it, for example with "
        "`timedatectl set-ntp true`"
    )
