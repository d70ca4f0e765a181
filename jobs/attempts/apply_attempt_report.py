"""Applies a node's report about an attempt to the rows of the run.

A report describes the present state, not a change, so applying one twice has no further effect."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from clusters import leases
from clusters.models import Node
from jobs import causes, lifecycle, outcomes
from jobs.attempts import (
    attempt_report_json,
    attempt_warnings,
    environment_record,
    final_plan,
    mpi_daemons,
    output_recorder,
    readiness,
    run_transitions,
)
from jobs.lineage import dataset_uses
from jobs.models import AttemptNode, Member, Run
from jobs.states import MEMBER_FINAL, MemberState
from jobs.task_messages import launch_soon
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.report import AttemptFact
from trainhub_launch.states import PHASES, Phase
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import update_rows


def apply_report(node: Node, part_id: int, fact: AttemptFact, now: datetime) -> bool:
    """Stores the report and advances the run.

    Returns False if an output that the report names is not stored yet: the node must report it again."""
    fact = attempt_report_json.normalize(fact, node.clock_offset_s)
    with transaction.atomic():
        # All writers lock the run first: two nodes that report their end at the same moment are applied one
        # after the other.
        run = lifecycle.lock_run(fact.run)
        part = next(iter(_parts(part_id, node.pk)), None)
        if run is None or part is None:
            raise Run.DoesNotExist(fact.run)
        part.node = node
        # Reports can overtake each other on the way: an older one must not move the part back.
        if part.phase and PHASES.index(fact.phase) < PHASES.index(part.phase):
            return True
        previous_phase, is_new_phase = part.phase, part.phase != fact.phase
        earlier_changes = (part.fact or {}).get("changed_inputs", [])
        _store(part, fact)
        _update_members(run, part, fact)
        attempt_warnings.add(part.attempt, fact.warnings, actor=f"node {node.name}")
        if new_changes := set(fact.changed_inputs) - set(earlier_changes):
            dataset_uses.note_changed_files(run, new_changes)
        has_all_outputs = output_recorder.record_outputs(run, part, fact)
        # Nothing of the attempt runs on this node any more. The run may have ended before, by a cancel or a
        # lost node.
        if (
            fact.phase is Phase.DONE
            and part.attempt.ended_at is not None
            and leases.release(run.pk, fact.attempt, node)
        ):
            launch_soon()
        if previous_phase in readiness.BEFORE_READY and is_new_phase:
            environment_record.record_prepared(run, part, fact, now)
        mpi_daemons.store_calls(run, part, fact)
        if fact.phase is not Phase.READY or not readiness.start_if_ready(run, part, is_first=is_new_phase):
            run_transitions.apply_reports(run, part, now)
    return has_all_outputs


@compiled
def _parts(part_id: int, node_id: int) -> QuerySet[AttemptNode]:
    return AttemptNode.objects.select_related("attempt").filter(pk=part_id, node_id=node_id)


@compiled
def _members(attempt_id: int, node_id: int) -> QuerySet[Member]:
    return Member.objects.filter(attempt_id=attempt_id, node_id=node_id)


def _store(part: AttemptNode, fact: AttemptFact) -> None:
    stored = attempt_report_json.to_json(fact)
    if stored == part.fact:
        return
    part.fact, part.phase = stored, fact.phase
    if fact.phase is Phase.READY:
        part.ports = final_plan.usable_ports(fact.ports)
    update_rows(AttemptNode, {"pk": part.pk}, fact=stored, phase=part.phase, ports=part.ports)


def _update_members(run: Run, part: AttemptNode, fact: AttemptFact) -> None:
    fact_by_rank = {member.rank: member for member in fact.members}
    for row in _members(part.attempt_id, part.node_id):
        if row.rank not in fact_by_rank:
            continue
        member = fact_by_rank[row.rank]
        state = outcomes.member_state(member)
        # A report that was overtaken must not bring a rank back to life.
        if row.state in MEMBER_FINAL and state not in MEMBER_FINAL:
            continue
        fields = {
            "state": state,
            "pid": member.pid,
            "exit_code": member.exit_code,
            "signal": member.signal,
            "log_bytes": member.log_bytes,
            "started_at": run_transitions.to_datetime(member.started_at),
            "ended_at": run_transitions.to_datetime(member.ended_at),
        }
        # Most reports change no rank; an UPDATE for each of them would be most of what the database has to
        # do.
        if all(getattr(row, name) == value for name, value in fields.items()):
            continue
        update_rows(Member, {"pk": row.pk}, **fields)
        if state is MemberState.FAILED:
            causes.store_soon(run.pk, fact.attempt)
        publish_on_commit(
            run_topic(run.pk),
            {
                "type": "member.changed",
                "run": run.pk,
                "attempt": fact.attempt,
                "rank": row.rank,
                "state": state.value,
            },
        )
