"""The only writer of a job's `state`: checks the transition table, records an event and publishes the change
after commit. External runs: see `jobs.external`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters import leases
from jobs import run_notifications
from jobs.logs import log_store
from jobs.models import Attempt, AttemptNode, Member, Run, RunEvent
from jobs.states import FINAL, TRANSITIONS, MemberState, Reason, RunKind, RunState
from jobs.task_messages import launch_run_soon, launch_soon, trace_soon, wake_soon
from live.publish import publish_on_commit
from live.topics import run_topic, runs_topic
from trainhub_launch.states import Phase
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import insert_row, update_rows


def advance(
    run_id: str,
    to: RunState,
    reason: Reason = Reason.NONE,
    *,
    facts: Mapping[str, object] | None = None,
    actor: str = "hub",
    message: str = "",
    attempt: int | None = None,
    at: datetime | None = None,
    locked: Run | None = None,
) -> bool:
    """Moves the run to the state `to`; returns False if the transition table does not allow it.

    `facts` fill the placeholders of the reason's sentence; a missing one raises KeyError. With `attempt`, the
    run moves only if it is still at that attempt: reports about an earlier attempt must not affect a later
    one.
    `at`: the time of the change, if a node reported it; the default is now. `locked`: the run as the caller
    has locked it, which need not be read again, and gets the new state.
    """
    sentence = reason.sentence(**(facts or {})) if reason else ""
    # Mostly within a transaction, all of which is rolled back after an error: a savepoint would be of no use.
    with transaction.atomic(savepoint=False):
        when = at or timezone.now()
        guard = {"pk": run_id} if attempt is None else {"pk": run_id, "attempt": attempt}
        run = _move(guard, to, {"reason": reason, "facts": dict(facts or {}), "state_since": when}, locked)
        if run is None:
            return False
        # In the same transaction as the state: the events of a run tell its whole story, without gaps.
        insert_row(
            RunEvent,
            run_id=run.pk,
            attempt=run.attempt,
            from_state=run.state,
            to_state=to,
            reason=reason,
            message=message or sentence,
            actor=actor,
            at=when,
        )
        _follow(run, to, reason, sentence, when)
        publish_change(run, to, reason)
        if locked is not None:
            locked.state, locked.state_since = to, when
    return True


def _follow(run: Run, to: RunState, reason: Reason, sentence: str, when: datetime) -> None:
    """Does what the new state `to` entails. `run`: as it was before."""
    if to in FINAL or to is RunState.QUEUED:
        _end_attempt(run, when)
        if to is RunState.QUEUED:
            # A retry: the run itself goes on. After an end, the places that it held are free for any
            # other run.
            launch_run_soon(run.pk)
        else:
            launch_soon()
    if to in FINAL:
        leases.release(run.pk, 0)  # what was reserved for it while it waited
        run_notifications.notify_ended(run, to, reason, sentence, when)
        trace_soon(run.pk)


def lock_run(run_id: str) -> Run | None:
    """Returns the run, locked until the transaction ends (on SQLite the whole database is), or None. All
    writers lock the run first."""
    return next(iter(_lock(run_id)), None)


@compiled
def _lock(run_id: str) -> QuerySet[Run]:
    return Run.objects.select_for_update().filter(pk=run_id)


@compiled
def _open_attempts(run_id: str, number: int) -> QuerySet[Attempt]:
    return Attempt.objects.filter(run_id=run_id, number=number, ended_at=None).only("number")


@compiled
def _parts_of(attempt_id: int) -> QuerySet[AttemptNode]:
    parts = AttemptNode.objects.filter(attempt_id=attempt_id).select_related("node")
    return parts.only("attempt_id", "claimed_at", "phase", "node__name")


@compiled
def unsettled_parts(attempt_id: int) -> QuerySet[AttemptNode, tuple[int]]:
    """Returns the ids of the parts of the attempt from which more reports are to come."""
    return AttemptNode.objects.filter(attempt_id=attempt_id, settled_at=None).values_list("pk")


def record_event(
    run_id: str, message: str, *, reason: Reason = Reason.NONE, actor: str = "hub", attempt: int = 0
) -> None:
    """Records an event that did not change the run's state."""
    with transaction.atomic(savepoint=False):
        RunEvent.objects.create(run_id=run_id, attempt=attempt, reason=reason, message=message, actor=actor)
        publish_on_commit(run_topic(run_id), {"type": "event.added", "run": run_id})


def set_waiting_reason(run_id: str, reason: Reason, facts: Mapping[str, object]) -> bool:
    """Stores why a queued run waits; returns False if it is not queued or the reason has not changed."""
    with transaction.atomic():
        run = Run.objects.select_for_update().filter(pk=run_id, state=RunState.QUEUED).first()
        if run is None or (run.reason == reason and run.facts == dict(facts)):
            return False
        first = run.reason != reason
        Run.objects.filter(pk=run_id, state=RunState.QUEUED).update(reason=reason, facts=dict(facts))
        # The facts may change with every placement (who is in front, how many GPUs are missing); an event for
        # each would fill the run's page.
        if first:
            record_event(run_id, reason.sentence(**facts), reason=reason, attempt=run.attempt)
        publish_change(run, RunState.QUEUED, reason)
    return True


def set_waiting_reasons(reason: Reason, facts: Mapping[str, Mapping[str, object]]) -> None:
    """Like `set_waiting_reason`, for many runs in a few queries. `facts`: by the ids of the runs."""
    with transaction.atomic():
        # In one order everywhere, so that two workers cannot wait for each other.
        queued = Run.objects.filter(pk__in=facts, state=RunState.QUEUED).order_by("pk")
        rows = queued.select_for_update().only("number", "workspace_id", "attempt", "reason", "facts")
        changed = [run for run in rows if run.reason != reason or run.facts != facts[run.pk]]
        first = [run for run in changed if run.reason != reason]
        RunEvent.objects.bulk_create(
            RunEvent(run=run, attempt=run.attempt, reason=reason, message=reason.sentence(**facts[run.pk]))
            for run in first
        )
        for run in changed:
            run.reason, run.facts = reason, dict(facts[run.pk])
            publish_change(run, RunState.QUEUED, reason)
        Run.objects.bulk_update(changed, ["reason", "facts"], batch_size=250)


def update_reason(run: Run, reason: Reason, facts: Mapping[str, object]) -> None:
    """Replaces the reason of a failed run by the one found in its logs, if the run is still at this
    attempt."""
    failed_run = Run.objects.filter(pk=run.pk, attempt=run.attempt, state=RunState.FAILED)
    if failed_run.update(reason=reason, facts=dict(facts)):
        publish_change(run, RunState.FAILED, reason)


def publish_change(run: Run, state: RunState, reason: Reason) -> None:
    """Notifies the subscribers of this run and of the run list once the transaction has committed."""
    publish_on_commit(run_topic(run.pk), {"type": "event.added", "run": run.pk})
    for topic in (run_topic(run.pk), runs_topic(run.workspace_id)):
        publish_on_commit(
            topic,
            {
                "type": "run.changed",
                "run": run.pk,
                "number": run.number,
                "state": state.value,
                "reason": reason.value,
                "attempt": run.attempt,
            },
        )


def _move(
    guard: Mapping[str, object], to: RunState, fields: dict[str, object], run: Run | None
) -> Run | None:
    """Moves the run and returns it as it was before, or None if it may not move. `guard`: the values that its
    fields must have. `run`: as it was read last.

    Compare-and-set: if two workers try the same transition, only one succeeds."""
    while True:
        if run is None:
            run = Run.objects.filter(**guard, kind=RunKind.JOB).first()
        if run is None or to not in TRANSITIONS[RunState(run.state)]:
            return None
        if to is RunState.RUNNING and run.started_at is None:
            fields["started_at"] = fields["state_since"]
        if to in FINAL:
            fields["finished_at"] = fields["state_since"]
        # Compared with the state that was read: if another transaction has changed it in between, no row
        # matches, and the loop reads again.
        seen = {**guard, "kind": RunKind.JOB, "state": run.state}
        if update_rows(Run, seen, state=to, **fields):
            return run
        run = None


def _end_attempt(run: Run, when: datetime) -> None:
    """Ends the latest attempt: revokes its token and releases the leases of nodes that run nothing of it.

    A node that claimed its part and has not reported its end keeps its lease: its GPUs stay reserved until it
    confirms that the processes are gone (`settle`). It is woken so that it stops them.
    """
    attempt = next(iter(_open_attempts(run.pk, run.attempt)), None)
    if attempt is None:
        return
    # An empty digest matches no token, so that scripts that still run cannot log to the run any more.
    update_rows(Attempt, {"pk": attempt.pk}, ended_at=when, token_digest="")
    for part in _parts_of(attempt.pk):
        if part.claimed_at is None:
            settle(part, run.pk, attempt.number, when)
        elif part.phase == Phase.DONE:
            leases.release(run.pk, attempt.number, part.node)
            _mark_running_lost(part)
        else:
            wake_soon(part.node, run.pk, attempt.number)
    if not unsettled_parts(attempt.pk):
        log_store.close(run.pk, attempt.number)
    # Nodes that still run these ranks stop them now, and report later how they ended.
    open_members = {"attempt_id": attempt.pk, "state": (MemberState.WAITING, MemberState.RUNNING)}
    update_rows(Member, open_members, state=MemberState.STOPPED)


def settle(part: AttemptNode, run_id: str, attempt: int, at: datetime) -> None:
    """Marks the node's part as settled: nothing of the attempt runs there, and no more reports will come."""
    update_rows(AttemptNode, {"pk": part.pk}, settled_at=at)
    _mark_running_lost(part)
    if leases.release(run_id, attempt, part.node):
        launch_soon()


def _mark_running_lost(part: AttemptNode) -> None:
    """Marks ranks as lost that are still shown as running: no report about their end will come."""
    # Mostly all have ended, and asking costs less than an UPDATE.
    if not _running(part.attempt_id, part.node_id):
        return
    running = Member.objects.filter(
        attempt_id=part.attempt_id, node_id=part.node_id, state=MemberState.RUNNING
    )
    running.update(state=MemberState.LOST)


@compiled
def _running(attempt_id: int, node_id: int) -> QuerySet[Member, tuple[int]]:
    running = Member.objects.filter(attempt_id=attempt_id, node_id=node_id, state=MemberState.RUNNING)
    return running.values_list("pk")
