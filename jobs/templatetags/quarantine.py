"""What templates of lower floors ask about runs that hold something."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from clusters.overview import LeaseSummary
from jobs.attempts.quarantine import quarantined_leases

register = template.Library()


@register.filter
def quarantined(leases: Sequence[LeaseSummary]) -> list[LeaseSummary]:
    """Those of attempts that have ended, while the node has not proved that nothing of them runs any more."""
    ended = quarantined_leases() if leases else frozenset()
    return [lease for lease in leases if lease.key in ended]
