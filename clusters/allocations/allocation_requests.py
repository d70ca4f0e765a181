"""Allocations from the request to the end: submitted to Slurm, canceled there, and looked at.

No call of Slurm happens inside a transaction. A row changes only from the state that was read."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.utils import timezone

from clusters.allocations import partitions, unix_accounts
from clusters.allocations.states import TRANSITIONS, AllocationState
from clusters.backends.contract import AttemptKey, Request
from clusters.backends.slurm.client import SlurmClient, read_jobs
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.reasons import explain_reason
from clusters.backends.slurm.script import BatchJob
from clusters.backends.slurm.states import JobPhase, SlurmState
from clusters.backends.slurm.submission import SUBMIT_TIMEOUT_S
from clusters.models import Allocation, SlurmPartition

log = logging.getLogger(__name__)
S = AllocationState
# Longer than the time limit of the call.
CALL_WITHIN = timedelta(seconds=SUBMIT_TIMEOUT_S + 30)
# After a submission that got no answer.
RETRY_AFTER = timedelta(seconds=20)
# A controller that crashed forgets what it accepted in its last seconds.
FORGOTTEN_AFTER = timedelta(minutes=5)
MAX_REASON = 200
STATES = {
    JobPhase.WAITING: S.QUEUED,
    JobPhase.STARTING: S.GRANTED,
    JobPhase.RUNNING: S.GRANTED,
    JobPhase.SUSPENDED: S.GRANTED,
    JobPhase.ENDING: S.GRANTED,
}


def advance(allocation: Allocation, to: AllocationState, **fields: object) -> bool:
    """Moves the allocation and writes `fields`. Returns False, changing nothing, if the transition is not
    allowed or the row is in another state than the caller has read. `to` may be the present state."""
    before = AllocationState(allocation.state)
    if to is not before and to not in TRANSITIONS[before]:
        return False
    if to is S.OVER and before is not S.OVER:
        fields = {"over_at": timezone.now(), **fields}
    if not Allocation.objects.filter(pk=allocation.pk, state=before).update(state=to, **fields):
        return False
    for name, value in {"state": to.value, **fields}.items():
        setattr(allocation, name, value)
    return True


def request_allocation(request: Request) -> Allocation:
    """Returns the attempt's allocation, which is made if there is none."""
    account = unix_accounts.account_of(request.cluster, request.person)
    allocation, _ = Allocation.objects.get_or_create(
        holder=request.holder,
        attempt=request.attempt,
        defaults={
            "cluster": request.cluster,
            "person": request.person,
            "account": account,
            "state": S.WANTED,
            "sentence": "It is being submitted to Slurm.",
        },
    )
    if allocation.state == S.WANTED and allocation.calling_until is None and allocation.account != account:
        # The table was changed before Slurm heard of it.
        advance(allocation, S.WANTED, account=account)
    return allocation


def submit(allocation: Allocation, row: SlurmPartition, job: BatchJob) -> None:
    """Submits the job. What Slurm refuses is over, with its own words; anything else is tried again. By its
    name, which no other has, it is found if an earlier submission got no answer."""
    if not allocation.account:
        sentence = unix_accounts.no_account_sentence(allocation.cluster, allocation.person)
        advance(allocation, S.OVER, refused=True, sentence=sentence)
        return
    try:
        client = partitions.client_of(row, allocation.account, allocation.person)
    except SlurmError as error:
        _wait(allocation, row, error)
        return
    now = timezone.now()
    # Of two workers with the same run, one calls.
    mine = Allocation.objects.filter(pk=allocation.pk, state=S.WANTED, calling_until=allocation.calling_until)
    if (allocation.calling_until or now) > now or not mine.update(
        calling_until=now + CALL_WITHIN, name=job.name
    ):
        return
    try:
        job_id = _find_or_submit(allocation, client, job)
    except SlurmError as error:
        _wait(allocation, row, error, calling_until=timezone.now() + RETRY_AFTER)
        return
    if not advance(allocation, S.QUEUED, job_id=job_id, sentence=f"Job {job_id} is in Slurm's queue."):
        # It was canceled while it was submitted.
        _cancel_jobs(row, [allocation], [job_id])


def _wait(allocation: Allocation, row: SlurmPartition, error: SlurmError, **fields: object) -> None:
    """Ends the request if Slurm has refused it; otherwise it waits, and says for what."""
    if error.fault in (SlurmFault.REFUSED, SlurmFault.NO_ACCOUNT):
        advance(allocation, S.OVER, refused=True, sentence=str(error))
        return
    if fields or allocation.sentence != str(error):
        advance(allocation, S.WANTED, sentence=str(error), **fields)
    # A token is the person's own matter, and others' jobs go on.
    if error.fault is not SlurmFault.TOKEN:
        partitions.record_trouble(row, error, timezone.now())


def _find_or_submit(allocation: Allocation, client: SlurmClient, job: BatchJob) -> int:
    """Returns the number of the job. An earlier call whose answer nobody got may have queued it."""
    queued = [] if allocation.calling_until is None else client.jobs_named(job.name)
    return queued[-1] if queued else client.submit(job)


def cancel_all(allocations: Sequence[Allocation]) -> Mapping[AttemptKey, str]:
    """Gives them up, whatever they have, with one call for each person. What Slurm does not take now is
    asked for again as long as the jobs are there. Returns those for which somebody has to do something first,
    with the sentence what."""
    Allocation.objects.filter(pk__in=[item.pk for item in allocations], cancel_requested_at=None).update(
        cancel_requested_at=timezone.now()
    )
    jobs: dict[tuple[int, str, int | None], list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        if allocation.state == S.WANTED:
            _find_or_give_up(allocation)
        if allocation.job_id is not None:
            jobs[allocation.cluster_id, allocation.account, allocation.person_id].append(allocation)
    waiting: dict[AttemptKey, str] = {}
    for items in jobs.values():
        row = partitions.partition_of(items[0].cluster)
        sentence = _cancel_jobs(row, items, [item.job_id for item in items if item.job_id is not None])
        if sentence:
            waiting |= {(item.holder, item.attempt): _waiting_sentence(item, sentence) for item in items}
    return waiting


def _waiting_sentence(allocation: Allocation, sentence: str) -> str:
    return (
        f"Slurm's job {allocation.job_id} could not be canceled yet: it is as soon as that is possible. If "
        f"Slurm starts it before, it ends by itself. {sentence}"
    )


def _find_or_give_up(allocation: Allocation) -> None:
    """Ends a request without a job. If a submission got no answer, Slurm is asked first whether it has it."""
    now = timezone.now()
    if (allocation.calling_until or now) > now:
        return  # its answer may still come
    if allocation.calling_until is not None:
        row = partitions.partition_of(allocation.cluster)
        try:
            queued = _client_for_search(row, allocation).jobs_named(allocation.name)
        except SlurmError as error:
            partitions.record_trouble(row, error, now)
            return
        if queued:
            advance(allocation, S.QUEUED, job_id=queued[-1])
            return
    advance(allocation, S.OVER, sentence="It was canceled before it was submitted.")


def _client_for_search(row: SlurmPartition, allocation: Allocation) -> SlurmClient:
    """Returns the Slurm as the job's owner, who sees it in any case; without a token, as the observer."""
    try:
        return partitions.client_of(row, allocation.account, allocation.person)
    except SlurmError as error:
        if error.fault is not SlurmFault.TOKEN:
            raise
        return partitions.observer_of(row)


def _cancel_jobs(row: SlurmPartition, owners: Sequence[Allocation], job_ids: Sequence[int]) -> str:
    """Cancels jobs of one account. Returns what the person has to do first, "" if that is nothing."""
    sentence = ""
    try:
        partitions.client_of(row, owners[0].account, owners[0].person).cancel_jobs(job_ids)
    except SlurmError as error:
        log.warning("Jobs %s could not be canceled: %s", job_ids, error)
        if error.fault is SlurmFault.TOKEN:
            sentence = str(error)
        else:
            partitions.record_trouble(row, error, timezone.now())
    for owner in owners:
        trouble = _waiting_sentence(owner, sentence) if sentence else ""
        if owner.cancel_trouble != trouble:
            Allocation.objects.filter(pk=owner.pk).update(cancel_trouble=trouble)
    return sentence


@dataclass(frozen=True)
class EndedJob:
    """An allocation that is over since this look. `state`: as Slurm calls it, None if it forgot the job."""

    allocation: Allocation
    state: SlurmState | None = None
    canceled_by: int | str | None = None


def observe(now: datetime, tell: Callable[[EndedJob], None]) -> None:
    """Looks at all open allocations with one call for each cluster. Tells of those whose job has ended, which
    are over once that is done. A Slurm that does not answer says nothing about any job."""
    by_cluster: dict[int, list[Allocation]] = defaultdict(list)
    rows = Allocation.objects.filter(over_at=None).exclude(job_id=None).select_related("cluster", "person")
    for allocation in rows:
        by_cluster[allocation.cluster_id].append(allocation)
    for allocations in by_cluster.values():
        row = partitions.partition_of(allocations[0].cluster)
        try:
            jobs = read_jobs(
                partitions.observer_of(row),
                [item.job_id for item in allocations if item.job_id is not None],
                has_accounting=bool(row.has_accounting),
            )
        except SlurmError as error:
            partitions.record_trouble(row, error, now)
            continue
        partitions.record_trouble(row, None, now)
        for allocation in allocations:
            # Both or none: a run that did not hear of the end would be taken for one that lost its nodes.
            with transaction.atomic():
                end = _store(allocation, jobs.get(allocation.job_id or 0), now)
                if end is not None:
                    tell(end)
        # One statement for all, because few rows have changed otherwise. After them: who reads that Slurm was
        # heard must also read what it said.
        present = [item.pk for item in allocations if item.job_id in jobs]
        Allocation.objects.filter(pk__in=present).update(seen_at=now)


def _store(allocation: Allocation, job: JobStatus | None, now: datetime) -> EndedJob | None:
    if job is None:
        # Accounting may hear of an end later than the controller forgets it.
        if now - (allocation.seen_at or allocation.requested_at) < FORGOTTEN_AFTER:
            return None
        sentence = f"Slurm knows job {allocation.job_id} no more."
        return EndedJob(allocation) if advance(allocation, S.OVER, sentence=sentence) else None
    answer: dict[str, object] = {"word": job.state.word, "reason": job.reason[:MAX_REASON]}
    if job.state.is_final:
        is_new = advance(allocation, S.OVER, sentence=job.state.sentence, **answer)
        return EndedJob(allocation, job.state, job.canceled_by) if is_new else None
    state = STATES.get(job.state.phase, AllocationState(allocation.state))
    answer |= {"sentence": sentence_of(job), "nodes": list(job.nodes), "estimated_at": _time(job.start_at)}
    if state != allocation.state or any(getattr(allocation, name) != value for name, value in answer.items()):
        advance(allocation, state, **answer)
    return None


def sentence_of(job: JobStatus) -> str:
    """Returns what a job that has not ended does or waits for."""
    if job.state.phase is not JobPhase.WAITING:
        return f"Job {job.job_id} has its nodes; TrainHub starts there."
    why = explain_reason(job.reason) or job.state.sentence
    start = f" Slurm expects to start it at {_time(job.start_at):%Y-%m-%d %H:%M} UTC." if job.start_at else ""
    return f"Job {job.job_id} is in Slurm's queue. {why}{start}"


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
