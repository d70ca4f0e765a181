"""Attempts that have ended while a node has not yet proved that nothing of them runs there any more."""

from __future__ import annotations

from clusters.leases import Key
from jobs.models import Attempt


def unproven() -> frozenset[Key]:
    """As the leases name them."""
    found = Attempt.objects.filter(ended_at__isnull=False, parts__settled_at=None, parts__isnull=False)
    return frozenset(found.values_list("run_id", "number"))
