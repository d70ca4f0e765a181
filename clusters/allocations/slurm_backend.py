"""Slurm as a kind of cluster: its queue decides who is next, and its nodes are the hub's while a job runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from clusters import offers
from clusters.allocations import (
    allocation_requests,
    claim_codes,
    end_reports,
    new_requests,
    partitions,
    redemption,
    relays,
    token_warnings,
)
from clusters.allocations.allocation_requests import EndedJob
from clusters.allocations.job_script import NodeProgram, batch_job, time_limit_s
from clusters.allocations.node_program import node_archive, pack_problem
from clusters.allocations.snapshots import snapshot_of
from clusters.allocations.states import AllocationState
from clusters.backends.contract import AttemptKey, LostAttempt, OutsideScheduler, Request
from clusters.backends.slurm.nodes import SlurmNode
from clusters.backends.slurm.script import batch_script
from clusters.backends.slurm.states import JobPhase, SlurmState
from clusters.enrolment.join import ca_fingerprint
from clusters.models import AllocatedNode, Allocation, Cluster
from clusters.visibility import may_use
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted
from trainhub_launch.scheduler.rejections import Refusal
from workspaces.models import Workspace

FIELD = "resources.cluster"


class SlurmScheduler:
    name = "Slurm"

    def place(self, request: Request) -> tuple[FreeNode, ...] | Refusal:
        cluster = request.cluster
        row = partitions.partition_of(cluster)
        limit_s = time_limit_s(partitions.settings_of(row), request)
        if limit_s > row.max_time_s:
            sentence = (
                f"The cluster {cluster.name} lets a run take {row.max_time_s // 60} minutes at most, with "
                f"its grace period; this one asks for {-(-limit_s // 60)}."
            )
            return Refusal(sentence, "limits.timeout_s", permanent=True)
        if cluster.drained_at is not None and not _of([(request.holder, request.attempt)]):
            sentence = (
                f"The cluster {cluster.name} is drained: nothing is passed on to Slurm until it is resumed."
            )
            return Refusal(sentence, FIELD, permanent=False)
        allocation = allocation_requests.request_allocation(request)
        if allocation.state == AllocationState.WANTED:
            if row.trouble and _has_just_failed(cluster):
                return Refusal(row.trouble, FIELD, permanent=False)
            if problem := pack_problem():
                sentence = f"The hub cannot pack its program for the nodes ({problem}). It tries again."
                return Refusal(sentence, FIELD, permanent=False)
            archive = node_archive()
            program = NodeProgram(
                row.python,
                relays.hub_url_for(row),
                claim_codes.claim_code(allocation.pk),
                ca_fingerprint(),
                archive.sha256 if archive else "",
            )
            job = batch_job(partitions.settings_of(row), request, program, allocation.losses)
            allocation_requests.submit(allocation, row, job)
        if allocation.state == AllocationState.OVER:
            # Whoever saw the end of a job that Slurm had taken says why, unless that was interrupted.
            is_final = allocation.refused or not end_reports.is_recent(allocation, timezone.now())
            return Refusal(allocation.sentence, FIELD, permanent=is_final)
        nodes = self._reporting_nodes(allocation, request)
        return nodes or Refusal(allocation.sentence, FIELD, permanent=False)

    def job_text(self, request: Request) -> str:
        row = partitions.partition_of(request.cluster)
        # Each job has a code of its own, and the program is packed when the first one is submitted.
        program = NodeProgram(
            row.python,
            relays.hub_url_for(row),
            "<assigned when it is submitted>",
            ca_fingerprint(),
            "<SHA-256 of the node program>",
        )
        return batch_script(batch_job(partitions.settings_of(row), request, program))

    def waits(self, cluster: Cluster) -> Mapping[AttemptKey, str]:
        queued = Allocation.objects.filter(cluster=cluster, state=AllocationState.QUEUED)
        rows = queued.values_list("holder", "attempt", "sentence")
        return {(holder, attempt): sentence for holder, attempt, sentence in rows}

    def describe(self, cluster: Cluster) -> str:
        row = partitions.partition_of(cluster)
        nodes = [node for node in snapshot_of(row).nodes if node.is_usable]
        if not nodes:
            return f"partition {row.partition} of a Slurm"
        most = max(sum(node.gpus.values()) for node in nodes)
        gpus = f"at most {counted(most, 'GPU')} on a node" if most else "no GPUs"
        return f"partition {row.partition} of a Slurm · {counted(len(nodes), 'usable node')} · {gpus}"

    def hints(self, cluster: Cluster, demand: Demand) -> Sequence[tuple[str, str]]:
        row = partitions.partition_of(cluster)
        start = f"Slurm decides when the run starts: it waits in the queue of the partition {row.partition}."
        if demand.limit_s:
            return [(FIELD, start)]
        end = (
            f"Slurm ends the run after {row.default_time_s // 60} minutes, the default of this cluster: "
            "enter a time limit if it takes longer."
        )
        return [(FIELD, start), ("limits.timeout_s", end)]

    def cancel(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, str]:
        return allocation_requests.cancel_all(_of(keys))

    def pending_cancel(self, holder: str) -> str:
        waiting = Allocation.objects.filter(holder=holder, over_at=None).exclude(cancel_trouble="")
        return waiting.values_list("cancel_trouble", flat=True).first() or ""

    def open_attempts(self) -> list[AttemptKey]:
        return list(Allocation.objects.filter(over_at=None).values_list("holder", "attempt"))

    def observe(self, tell: Callable[[LostAttempt], None]) -> None:
        token_warnings.warn_of_ends(timezone.now())
        # Not at once: whoever is told of the end must be the first to act on it.
        redemption.release_nodes_of_ended()
        allocation_requests.observe(timezone.now(), lambda end: tell(_lost(end)))

    def may_explain(self, key: AttemptKey, now: datetime) -> bool:
        return end_reports.may_explain(key, now)

    def request_again(self, key: AttemptKey) -> bool:
        return new_requests.request_again(key)

    def _reporting_nodes(self, allocation: Allocation, request: Request) -> tuple[FreeNode, ...]:
        """Returns the allocation's nodes as they report, once all of them do."""
        names = AllocatedNode.objects.filter(allocation=allocation, node__revoked_at=None).values_list(
            "node__name", flat=True
        )
        if len(names) < request.demand.nodes:
            return ()
        nodes = offers.offers(allocation.cluster, request.workspace, names=list(names))
        ready = tuple(node for node in nodes if node.takes_runs)
        return ready if len(ready) >= request.demand.nodes else ()


class SlurmBackend:
    def __init__(self) -> None:
        self.scheduler: OutsideScheduler | None = SlurmScheduler()

    def nodes(
        self,
        cluster: Cluster,
        viewer: Workspace | None = None,
        over: Collection[AttemptKey] = (),  # noqa: ARG002 - Slurm knows by itself what has ended
        max_age_s: float = 0.0,  # noqa: ARG002 - what Slurm said last
    ) -> tuple[FreeNode, ...]:
        if viewer is not None and not may_use(cluster, viewer):
            return ()
        return tuple(map(_coming, snapshot_of(partitions.partition_of(cluster)).nodes))


def _of(keys: Sequence[AttemptKey]) -> list[Allocation]:
    rows = Allocation.objects.filter(holder__in={holder for holder, _ in keys}, over_at=None)
    key_set = set(keys)
    return [row for row in rows.select_related("cluster", "person") if (row.holder, row.attempt) in key_set]


def _has_just_failed(cluster: Cluster) -> bool:
    """Returns whether a submission has failed some seconds ago.

    A call of a Slurm that is away takes as long, and meanwhile no run of any cluster is placed."""
    failed = Allocation.objects.filter(cluster=cluster, state=AllocationState.WANTED)
    return failed.filter(calling_until__gt=timezone.now()).exists()


def _lost(end: EndedJob) -> LostAttempt:
    allocation, state = end.allocation, end.state
    sentence, may_retry, canceled_by = allocation.sentence, True, ""
    if state is not None:
        sentence = f"Slurm's job {allocation.job_id} has ended ({state.word}). {state.sentence}"
        may_retry = state.phase is JobPhase.LOST
        if state.phase is JobPhase.FAILED:
            sentence += _where_it_says_why(allocation, state)
        if state.phase is JobPhase.CANCELED:
            canceled_by = (
                f"account {end.canceled_by} in Slurm" if end.canceled_by is not None else "somebody in Slurm"
            )
    return LostAttempt(
        allocation.holder,
        allocation.attempt,
        sentence,
        may_retry=may_retry,
        canceled_by=canceled_by,
        by_itself=state in end_reports.OWN_ENDS,
    )


def _where_it_says_why(allocation: Allocation, state: SlurmState) -> str:
    """Returns where the output of a job is that knows more than its state, "" if the state says all."""
    if not AllocatedNode.objects.filter(allocation=allocation).exists():
        if allocation.trouble:
            return f" On {allocation.trouble}"
        before = "None of its nodes had reported to the hub"
    elif state.word == "FAILED":
        # As where Slurm kills a step for its memory, which only the output of the job says.
        before = "Its processes were ended before they had reported why"
    else:
        return ""
    folder = partitions.partition_of(allocation.cluster).shared_folder
    where = (
        f"{folder}/trainhub-{allocation.job_id}.log says why"
        if folder
        else "the settings of the cluster have a folder for the output of jobs, which says why"
    )
    return f" {before}: {where}."


def _coming(node: SlurmNode) -> FreeNode:
    """Returns the node as a preview needs it: nothing is free for the hub before Slurm gives it."""
    gpus = sum(node.gpus.values())
    return FreeNode(
        name=node.name,
        address=f"<address of {node.name}>",
        gpus=(),
        gpus_total=gpus,
        slots=0,
        slots_total=max(8, 4 * node.cpus),
        cores=node.cpus,
        interface="<interface>",
        memory_total=node.memory_mb * 1024**2,
        closed="" if node.is_usable else f"is {', '.join(node.states).lower()} in Slurm: {node.reason}",
        is_coming=True,
    )
