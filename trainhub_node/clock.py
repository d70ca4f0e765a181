"""The difference between this machine's clock and the hub's: the times of logs and failures come from
here."""

from __future__ import annotations

TOLERATED_S = 2.0


def offset_s(hub_time: float, requested_at: float, answered_at: float) -> float:
    """Returns the hub's clock minus ours, 0 if the round trip can explain it. All in seconds, times in
    Unix seconds."""
    half = max(0.0, answered_at - requested_at) / 2
    offset = hub_time - requested_at - half
    return 0.0 if abs(offset) <= half else offset


def warning(offset: float) -> str:
    """Returns a sentence about an offset that is too large, else ""."""
    if abs(offset) <= TOLERATED_S:
        return ""
    direction = "behind" if offset > 0 else "ahead of"
    return (
        f"this machine's clock is {abs(offset):.0f} s {direction} the hub's; set it, for example with "
        "`timedatectl set-ntp true`"
    )
