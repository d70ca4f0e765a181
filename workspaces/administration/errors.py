from __future__ import annotations

from workspaces.models import User


class AdministrationError(Exception):
    """An account or a workspace cannot be made or changed as requested; `field` is what has to be different,
    and `message` says how, in words that follow its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def require_person(user: User) -> None:
    """Raises AdministrationError for a service account, which has neither a sign-in nor an operator's
    rights."""
    if user.is_service_account:
        raise AdministrationError(
            "user",
            f"{user} is a service account; its workspace's owners manage it under Settings, Service accounts",
        )
