"""How an attempt's fact, told by one node, changes the rows of its run. Idempotent: a fact says how things are."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import PurePosixPath

from django.db import transaction
from django.utils import timezone

from clusters import leases
from clusters.models import Node
from jobs import causes, daemons, moving, outcomes, outputs, planning, readiness, remarks, stored_facts
from jobs.models import Artifact, AttemptNode, Member, Run
from jobs.queueing import launch_soon
from jobs.states import MEMBER_FINAL, MemberState
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.report import PHASES, READY, AttemptFact
from workspaces import blobs

log = logging.getLogger(__name__)


def apply(node: Node, part_id: int, fact: AttemptFact, now: datetime) -> bool:
    """Take the fact; False when something it names (an uploaded output) is not here yet, so it must come again."""
    fact = stored_facts.tidied(fact, node.clock_offset_s)
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=fact.run)
        part = AttemptNode.objects.select_related("attempt", "node").get(pk=part_id)
        if part.phase and PHASES.index(fact.phase) < PHASES.index(part.phase):
            return True
        entered = part.phase != fact.phase
        _store(part, fact)
        _note_members(run, part, fact)
        remarks.add(part.attempt, fact.warnings, actor=f"node {node.name}")
        whole = _note_outputs(run, part, fact)
        if fact.phase == "done" and part.attempt.ended_at is not None and leases.release(run.pk, fact.attempt, node):
            launch_soon()
        daemons.note_calls(run, part, fact)
        if fact.phase != READY or not readiness.look(run, part, news=entered):
            moving.move(run, part.attempt, node, now)
    return whole


def _store(part: AttemptNode, fact: AttemptFact) -> None:
    stored = stored_facts.to_json(fact)
    if stored == part.fact:
        return
    part.fact, part.phase = stored, fact.phase
    if fact.phase == READY:
        part.ports = planning.usable(fact.ports)
    AttemptNode.objects.filter(pk=part.pk).update(fact=stored, phase=part.phase, ports=part.ports)


def _note_members(run: Run, part: AttemptNode, fact: AttemptFact) -> None:
    told = {member.rank: member for member in fact.members}
    for row in Member.objects.filter(attempt=part.attempt, node_id=part.node_id, rank__in=told):
        member = told[row.rank]
        state = outcomes.member_state(member)
        if row.state in MEMBER_FINAL and state not in MEMBER_FINAL:
            continue
        fields = {
            "state": state, "pid": member.pid, "exit_code": member.exit_code, "signal": member.signal,
            "log_bytes": member.log_bytes, "started_at": moving.time_of(member.started_at),
            "ended_at": moving.time_of(member.ended_at),
        }
        if all(getattr(row, name) == value for name, value in fields.items()):
            continue
        Member.objects.filter(pk=row.pk).update(**fields)
        if state is MemberState.FAILED:
            causes.store_soon(run.pk, fact.attempt)
        publish_on_commit(
            run_topic(run.pk),
            {"type": "member.changed", "run": run.pk, "attempt": fact.attempt, "rank": row.rank, "state": state.value},
        )


def _note_outputs(run: Run, part: AttemptNode, fact: AttemptFact) -> bool:
    """A row for every output whose bytes are here; False when some are not. Of different files with one path that of the first
    node has it, whichever told first. What was logged under the same path since the ranks ended stays: a fact comes again."""
    if not fact.outputs:
        return True
    at = moving.time_of(fact.phase_at.get("uploading", fact.phase_at.get(fact.phase))) or timezone.now()
    rows = {row.path: row for row in Artifact.objects.filter(run=run, attempt=part.attempt.number)}
    whole = True
    for output in fact.outputs:
        if not _is_inside(output.path):
            log.warning("Node %s names an output of run %s outside outputs/: %r", part.node.name, run.pk, output.path)
            continue
        path = output.path
        held = rows.get(path)
        if held is not None and held.sha256 != output.sha256:
            if (held.node_rank or 0) > part.node_rank:
                _set_apart(held)
                held = None
            elif part.node_rank > 0:
                path = outputs.apart(path, part.node_rank)
                held = rows.get(path)
        if held is not None and (held.sha256 == output.sha256 or held.created_at > at):
            continue
        if not blobs.hold(output.sha256):
            whole = False
            continue
        size = blobs.path(output.sha256).stat().st_size
        rows[path] = outputs.put(run, part.attempt.number, path, output.sha256, size, node_rank=part.node_rank)
    return whole


def _set_apart(row: Artifact) -> None:
    """Of a later node, which told before the one that now takes its path."""
    place = outputs.apart(row.path, row.node_rank or 0)
    outputs.put(row.run, row.attempt, place, row.sha256, row.size_bytes, node_rank=row.node_rank)


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    plain = str(pure) == path and "\x00" not in path and len(path) <= 900
    return plain and not pure.is_absolute() and ".." not in pure.parts and path not in ("", ".")
