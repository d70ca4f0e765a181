"""The nodes of an allocation become nodes of the hub: each redeems the claim code of its job, once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from clusters import journal
from clusters.allocations import allocation_requests, claim_codes, partitions
from clusters.allocations.states import AllocationState
from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.states import JobPhase
from clusters.enrolment.node_tokens import enrol_node
from clusters.models import AllocatedNode, Allocation, Cluster, Gpu, Node
from trainhub_launch.errors import SpecError

# What has started, by Slurm's word.
STARTED = frozenset({JobPhase.STARTING, JobPhase.RUNNING})
MAX_NAME = 50
MAX_TROUBLE = 400


class ClaimRefused(SpecError):
    """The claim does not count; the message says why."""


class ClaimTooEarly(ClaimRefused):
    """Slurm does not report the job running yet, or does not answer: ask again."""


@dataclass(frozen=True)
class Claim:
    """What a node sends. `job_id`, `restart_count`: of its Slurm job; `slurm_node`: Slurm's name of it."""

    code: str
    job_id: int
    restart_count: int
    slurm_node: str


def redeem(claim: Claim) -> tuple[Node, str]:
    """Returns the node and its token, which is valid as long as the allocation is. Raises ClaimRefused."""
    return _enrol(_verified(claim), claim)


def note_trouble(claim: Claim, sentence: str) -> None:
    """Remembers why a node of the allocation cannot start the node program. Raises ClaimRefused."""
    allocation = _verified(claim)
    text = "".join(char if char.isprintable() else " " for char in f"{claim.slurm_node}: {sentence}")
    Allocation.objects.filter(pk=allocation.pk, over_at=None).update(trouble=text[:MAX_TROUBLE])


def is_open(code: str) -> bool:
    """Returns whether the code belongs to an allocation that is not over."""
    return Allocation.objects.filter(pk=claim_codes.allocation_id_of(code) or 0, over_at=None).exists()


def _verified(claim: Claim) -> Allocation:
    """Returns the allocation of whose running job the claim is. Raises ClaimRefused."""
    allocation = (
        Allocation.objects.select_related("cluster")
        .filter(pk=claim_codes.allocation_id_of(claim.code) or 0, over_at=None)
        .first()
    )
    if allocation is None:
        raise ClaimRefused("code", "this code belongs to no open request of this hub")
    if allocation.cancel_requested_at is not None:
        # As where Slurm starts a job that it could not be asked to cancel. So the job ends by itself.
        raise ClaimRefused("code", "the run was canceled")
    if allocation.job_id is None:
        raise ClaimTooEarly("job_id", "the hub has not stored the number of this job yet")
    if allocation.job_id != claim.job_id:
        raise ClaimRefused("job_id", f"this code is for job {allocation.job_id}, not for {claim.job_id}")
    job = _running_job(allocation)
    if claim.slurm_node not in job.nodes:
        raise ClaimRefused("node", f"Slurm runs job {claim.job_id} on other nodes than {claim.slurm_node}")
    if job.restart_count not in (None, claim.restart_count):
        raise ClaimRefused("restart_count", "this is an earlier start of the job")
    return allocation


def _running_job(allocation: Allocation) -> JobStatus:
    """Returns the job as Slurm reports it now."""
    job_id = allocation.job_id or 0
    row = partitions.partition_of(allocation.cluster)
    try:
        job = read_jobs(partitions.observer_of(row), [job_id], has_accounting=False).get(job_id)
    except SlurmError as error:
        raise ClaimTooEarly("job_id", str(error)) from error
    if job is None or job.state.is_final:
        raise ClaimRefused("job_id", f"Slurm does not report job {job_id} running")
    if job.state.phase not in STARTED:
        raise ClaimTooEarly("job_id", f"Slurm does not report job {job_id} running yet")
    if job.user != allocation.account:
        raise ClaimRefused("job_id", f"Slurm reports job {job_id} of another account")
    return job


@transaction.atomic
def _enrol(allocation: Allocation, claim: Claim) -> tuple[Node, str]:
    Cluster.objects.select_for_update().get(pk=allocation.cluster_id)
    members = AllocatedNode.objects.filter(allocation=allocation, restart_count=claim.restart_count)
    if members.filter(slurm_node=claim.slurm_node).exists():
        raise ClaimRefused("node", f"{claim.slurm_node} has used this code already for this start of the job")
    current = Allocation.objects.get(pk=allocation.pk)
    if current.state == AllocationState.OVER:
        raise ClaimRefused("code", "the request is over")
    allocation_requests.advance(current, AllocationState.GRANTED)
    node, token = enrol_node(allocation.cluster.name, _free_name(allocation.cluster, claim.slurm_node))
    # What the machine reported for an earlier job says nothing about this one.
    Node.objects.filter(pk=node.pk).update(last_report_at=None, agent_id="")
    Gpu.objects.filter(node=node).update(present=False)
    AllocatedNode.objects.create(
        allocation=allocation,
        slurm_node=claim.slurm_node,
        restart_count=claim.restart_count,
        node=node,
        redeemed_at=timezone.now(),
    )
    journal.add(node, "joined", f"It runs Slurm's job {allocation.job_id} on {claim.slurm_node}.")
    return node, token


def _free_name(cluster: Cluster, slurm_node: str) -> str:
    """Returns the name of the node's row. A row per job that shares the machine, used again by later jobs, so
    that a machine has a history and no more rows than jobs at once."""
    base = re.sub(r"[^a-z0-9-]+", "-", f"{cluster.name}-{slurm_node}".lower()).strip("-")[: MAX_NAME - 4]
    in_use = set(
        AllocatedNode.objects.filter(allocation__over_at=None).values_list("node__name", flat=True)
    ) | set(Node.objects.exclude(cluster=cluster).values_list("name", flat=True))
    number = 1
    while (name := base if number == 1 else f"{base}-{number}") in in_use:
        number += 1
    return name


def release_nodes_of_ended() -> None:
    """Ends the tokens of nodes whose allocation is over. Their rows stay, with their history."""
    # A row may serve a later job already.
    in_use = AllocatedNode.objects.filter(allocation__over_at=None).values("node")
    over = AllocatedNode.objects.exclude(allocation__over_at=None).values("node")
    nodes = Node.objects.filter(pk__in=over, removed_at=None).exclude(pk__in=in_use)
    # Read first: this is asked every few seconds, also where there is no Slurm, and a write locks SQLite.
    ended = list(nodes.values_list("pk", flat=True))
    if ended:
        now = timezone.now()
        Node.objects.filter(pk__in=ended).update(revoked_at=now, removed_at=now)
