"""Ended attempts whose processes may still run on a node: the node has not yet confirmed that they are
gone."""

from __future__ import annotations

from django.db.models import QuerySet

from clusters.offers import AttemptKey
from jobs.models import Attempt
from workspaces.database.compiled_queries import compiled


def quarantined_leases() -> frozenset[AttemptKey]:
    """Returns the attempts as lease keys."""
    return frozenset(_unconfirmed())


@compiled
def _unconfirmed() -> QuerySet[Attempt, tuple[str, int]]:
    # Over for the hub, but a node has not confirmed that its processes are gone; they may still use the GPUs.
    attempts = Attempt.objects.filter(ended_at__isnull=False, parts__settled_at=None, parts__isnull=False)
    return attempts.values_list("run_id", "number")
