"""The hub of the chosen profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainhub_cli.options import profile_name
from trainhub_sdk.profiles import Profile, choose_profile

if TYPE_CHECKING:
    from trainhub_sdk.api_connection import ApiConnection
    from trainhub_sdk.client import Client


def chosen_profile() -> Profile:
    """Returns the profile of --profile, the variables, or the current one. Raises NoProfile."""
    return choose_profile(profile_name())


def open_api() -> ApiConnection:
    """Returns a connection for lists, which need no more. Raises NoProfile."""
    from trainhub_sdk.api_connection import ApiConnection

    profile = chosen_profile()
    return ApiConnection(profile.url, profile.token, profile.ca)


def open_client() -> Client:
    """Returns a client. Raises NoProfile."""
    from trainhub_sdk.client import Client

    profile = chosen_profile()
    return Client(profile.url, profile.token, profile.ca)
