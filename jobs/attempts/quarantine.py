"""Attempts that have ended while a node has not yet proved that nothing of them runs there any more."""

from __future__ import annotations

from clusters.leases import AttemptKey
from jobs.models import Attempt


def quarantined_leases() -> frozenset[AttemptKey]:
    """As the leases name them."""
    attempts = Attempt.objects.filter(ended_at__isnull=False, parts__settled_at=None, parts__isnull=False)
    return frozenset(attempts.values_list("run_id", "number"))
