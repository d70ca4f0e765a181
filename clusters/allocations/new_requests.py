"""Another job for an attempt whose job was lost before the attempt had started."""

from __future__ import annotations

from django.db import transaction

from clusters.allocations import allocation_requests, redemption
from clusters.allocations.states import AllocationState
from clusters.backends.contract import AttemptKey
from clusters.models import AllocatedNode, Allocation

# A node that fails every job would otherwise be given the same run for ever.
MAX_LOSSES = 10


@transaction.atomic
def request_again(key: AttemptKey) -> bool:
    """See OutsideScheduler."""
    holder, attempt = key
    allocation = Allocation.objects.filter(holder=holder, attempt=attempt, refused=False).first()
    if allocation is None or allocation.losses >= MAX_LOSSES:
        return False
    redemption.release_nodes_of_ended()
    AllocatedNode.objects.filter(allocation=allocation).delete()
    return allocation_requests.advance(
        allocation,
        AllocationState.WANTED,
        over_at=None,
        job_id=None,
        calling_until=None,
        losses=allocation.losses + 1,
        word="",
        reason="",
        nodes=[],
        seen_at=None,
        estimated_at=None,
        end_report_at=None,
        cancel_requested_at=None,
        cancel_trouble="",
        sentence="It lost its nodes before it started, and is being submitted to Slurm again.",
    )
