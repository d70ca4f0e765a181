from __future__ import annotations

from trainhub_launch.errors import SpecError


class RegistryError(SpecError):
    """A model, version or alias cannot be made as requested; `field` names the value to change."""
