"""How an exchange with a provider ends. Without allauth, so that views can name it before that is loaded."""

from __future__ import annotations

from workspaces.authentication.external.accounts import ExternalIdentity


class Exchanged(Exception):
    """The provider says who the person is. `next_address`: where they wanted to go. `connect`: the primary
    key of the person who wants to connect this account, if that is why they were sent there."""

    def __init__(self, identity: ExternalIdentity, next_address: str, connect: int | None) -> None:
        super().__init__(identity.subject)
        self.identity, self.next_address, self.connect = identity, next_address, connect


class ExchangeFailed(Exception):
    """`message`: a sentence for the person. `reason`: for the log."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.message, self.reason = message, reason
