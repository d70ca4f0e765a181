from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a member may do: viewer reads, contributor also submits and cancels, owner also manages people."""

    VIEWER = "viewer"
    CONTRIBUTOR = "contributor"
    OWNER = "owner"

    def covers(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)


class TokenScope(StrEnum):
    """What a program may do with an API token: read changes nothing, write does whatever its person's role
    allows."""

    READ = "read"
    WRITE = "write"


class MailKind(StrEnum):
    """Why the hub itself sends a mail to somebody."""

    CONFIRM = "confirm"
    CHANGED = "changed"
    RESET = "reset"
    INVITE = "invite"


class MailState(StrEnum):
    """FAILED: given up, or there was nobody to send it to."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
