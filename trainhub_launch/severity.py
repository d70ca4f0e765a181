"""The severities of alerts."""

from __future__ import annotations

CRITICAL, WARNING = "critical", "warning"
SEVERITIES = (CRITICAL, WARNING)
