"""Errors of this app; each message is a sentence for the user."""

from __future__ import annotations

from trainhub_launch.errors import LaunchError


class Conflict(LaunchError):
    """The object is not in a state that allows this."""
