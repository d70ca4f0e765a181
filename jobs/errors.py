"""What this floor refuses; each message is a sentence for the person who asked."""

from __future__ import annotations

from trainhub_launch.errors import LaunchError


class Conflict(LaunchError):
    """The object is not in a state that allows this."""
