"""How grave an alert is."""

from __future__ import annotations

CRITICAL, WARNING = "critical", "warning"
SEVERITIES = (CRITICAL, WARNING)
