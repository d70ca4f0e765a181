"""A template filter for pages of lower layers, which must not import this app."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from clusters.gpus.gpu_cells import LeaseSummary
from jobs.attempts.quarantine import quarantined_leases

register = template.Library()


@register.filter
def quarantined(leases: Sequence[LeaseSummary]) -> list[LeaseSummary]:
    """Returns the leases of ended attempts whose node has not yet confirmed that the processes are gone."""
    ended = quarantined_leases() if leases else frozenset()
    return [lease for lease in leases if lease.key in ended]
