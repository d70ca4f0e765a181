"""Checks a spec before it runs. Each finding names the field that it concerns.

The modules here treat all frameworks alike; findings about one framework lie in the folder of that framework.
`trainhub_launch.planner.validation` collects them all."""

from __future__ import annotations

from trainhub_launch.findings.environment import RESERVED_PREFIXES, reserved
from trainhub_launch.findings.finding import Finding

__all__ = ["RESERVED_PREFIXES", "Finding", "reserved"]
