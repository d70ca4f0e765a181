"""The ways to sign in of the SDK v1. All are accepted and none is used: a hub knows its users by a token."""

from __future__ import annotations

from typing import Any

from trainhub_azureml.notices import warn


class AbstractAuthentication:
    def __init__(self, *_values: Any, **_others: Any) -> None:
        warn(
            f"{type(self).__name__} is not used: the hub takes the token of trainhub login, or that of "
            "TRAINHUB_TOKEN."
        )

    def get_authentication_header(self) -> dict[str, str]:
        """Returns the header for requests to the hub. Raises NoProfile."""
        from trainhub_sdk.profiles import choose_profile

        return {"Authorization": f"Bearer {choose_profile().token}"}


class InteractiveLoginAuthentication(AbstractAuthentication):
    """Opens no browser."""


class AzureCliAuthentication(AbstractAuthentication):
    """Starts no other program."""


class ServicePrincipalAuthentication(AbstractAuthentication):
    """The counterpart on a hub is a service account, whose token is used like any other."""


class MsiAuthentication(AbstractAuthentication):
    """The counterpart on a hub is a service account, whose token is used like any other."""


class TokenAuthentication(AbstractAuthentication):
    """Does not ask the given function for tokens."""
