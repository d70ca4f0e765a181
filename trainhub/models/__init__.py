"""The table of the installation as a whole."""

from __future__ import annotations

from trainhub.models.hub_release import HubRelease

__all__ = ["HubRelease"]
