"""How this agent was installed, which says what brings new versions to it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from trainhub_launch.machine import BY_APT, BY_HAND, BY_HUB, BY_SLURM, SELF_UPGRADE, UPGRADE_BY
from trainhub_node import __version__
from trainhub_node.bootstrap_command import PACKAGE

VARIABLE = "TRAINHUB_NODE_UPGRADES"
# This agent does it itself, when the hub orders that.
SELF = "self"
# The hub and the scripts for Slurm set the last two for the agents that they start.
CHOICES = (SELF, "off", BY_HUB, BY_SLURM)
# Where the Debian package has its files.
DEBIAN = Path("/usr/lib/trainhub-node")


def upgrade_way(env: Mapping[str, str]) -> str:
    """Returns SELF, or what else brings new versions: BY_APT, BY_HUB, BY_SLURM or BY_HAND. Raises ValueError
    for a wrong variable."""
    value = env.get(VARIABLE, "") or SELF
    if value not in CHOICES:
        raise ValueError(f"{VARIABLE}={value} must be self or off")
    if value == "off":
        return BY_HAND
    # What dpkg says is installed is what runs.
    return BY_APT if value == SELF and PACKAGE.parent == DEBIAN else value


def upgrade_capability(way: str) -> str:
    return SELF_UPGRADE if way == SELF else f"{UPGRADE_BY}{way}"


def package_identity() -> str:
    """Returns what changes when somebody installs another package, or the same one again, or when another
    Python runs it."""
    written_at = (PACKAGE / "__init__.py").stat().st_mtime_ns
    return f"{__version__} {written_at} {sys.implementation.cache_tag} {sys.prefix}"
