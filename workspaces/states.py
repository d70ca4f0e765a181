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
    """What a program may do with an API token (workspaces.authentication.token_calls). Read changes nothing;
    log only logs runs of its own, and register also registers their models; submit also runs programs; write
    does whatever its person's role allows."""

    READ = "read"
    LOG = "log"
    REGISTER = "register"
    SUBMIT = "submit"
    WRITE = "write"

    @property
    def words(self) -> str:
        """What people choose on the settings page."""
        return {
            TokenScope.READ: "read",
            TokenScope.LOG: "log runs",
            TokenScope.REGISTER: "log runs, register models",
            TokenScope.SUBMIT: "submit runs",
            TokenScope.WRITE: "everything",
        }[self]

    @property
    def only_logs(self) -> bool:
        """Whether such a token reaches runs of its person only."""
        return self in (TokenScope.LOG, TokenScope.REGISTER)


class MailKind(StrEnum):
    """Why the hub itself sends a mail to somebody."""

    CONFIRM = "confirm"
    CHANGED = "changed"
    RESET = "reset"
    INVITE = "invite"
    SECURITY = "security"
    RETENTION = "retention"


class MailState(StrEnum):
    """FAILED: given up, or there was nobody to send it to."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


class SignInChange(StrEnum):
    """What has changed about the ways in which a person signs in; a mail tells them."""

    PASSKEY_ADDED = "passkey added"
    PASSKEY_REMOVED = "passkey removed"
    APP_ADDED = "app added"
    APP_REMOVED = "app removed"
    FACTORS_RESET = "factors reset"
    RECOVERY_CODES = "recovery codes"
    PASSWORD = "password"  # noqa: S105 - a word, not a secret
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
