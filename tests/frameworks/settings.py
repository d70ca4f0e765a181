"""The settings of a hub that has one more framework in its table."""

from __future__ import annotations

from tests.frameworks import ring
from trainhub.settings import *  # noqa: F403
from trainhub_launch.frameworks import FRAMEWORKS

FRAMEWORKS[ring.FRAMEWORK.name] = ring.FRAMEWORK
