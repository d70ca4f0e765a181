"""How an attempt's fact, told by one node, changes the rows of its run. Idempotent: a fact says how things are."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from django.db import transaction

from clusters import leases
from clusters.models import Node
from jobs import lifecycle, outcomes
from jobs.ending import end
from jobs.masking import mask
from jobs.models import Artifact, Attempt, AttemptNode, Member, Run
from jobs.queueing import launch_soon, wake_soon
from jobs.states import MEMBER_FINAL, Reason, RunState
from jobs.tokens import token_of
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.report import PHASES, AttemptFact, DaemonCall, MemberFact, OutputFile
from workspaces import blobs

log = logging.getLogger(__name__)
MAX_WARNINGS = 100
_STATE_OF_PHASE = {"running": RunState.RUNNING, "uploading": RunState.FINALIZING}


def apply(node: Node, part_id: int, fact: AttemptFact, now: datetime) -> bool:
    """Take the fact; False when something it names (an uploaded output) is not here yet, so it must come again."""
    fact = _readable(fact)
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=fact.run)
        part = AttemptNode.objects.select_related("attempt", "node").get(pk=part_id)
        if part.phase and PHASES.index(fact.phase) < PHASES.index(part.phase):
            return True
        stored = _to_json(fact)
        if stored != part.fact:
            AttemptNode.objects.filter(pk=part.pk).update(fact=stored, phase=fact.phase)
            part.fact, part.phase = stored, fact.phase
        _note_members(run, part, fact)
        _note_warnings(part.attempt, node, fact.warnings)
        whole = _note_outputs(run, part, fact.outputs)
        if fact.phase == "done" and part.attempt.ended_at is not None and leases.release(run.pk, fact.attempt, node):
            launch_soon()
        _move_run(run, part.attempt, node, now)
    return whole


def part_of(part: AttemptNode, decides: Mapping[int, bool]) -> outcomes.Part:
    """A stored part as `outcomes` reads it."""
    fact = fact_from_json(part.fact) if part.fact else None
    return outcomes.Part(node=part.node.name, node_rank=part.node_rank, fact=fact, decides=decides)


def fact_from_json(stored: Mapping[str, Any]) -> AttemptFact:
    return AttemptFact(
        **{
            **stored,
            "members": tuple(MemberFact(**item) for item in stored["members"]),
            "warnings": tuple(stored["warnings"]),
            "ports": tuple(stored.get("ports", ())),
            "daemons": tuple(DaemonCall(item["host"], tuple(item["argv"])) for item in stored.get("daemons", ())),
        }
    )


def _readable(fact: AttemptFact) -> AttemptFact:
    """Without the attempt's token, should a tool have printed it into an error."""
    hidden = (token_of(fact.run, fact.attempt),)
    return dataclasses.replace(
        fact, error=mask(fact.error, hidden)[:4000], warnings=tuple(mask(item, hidden)[:1000] for item in fact.warnings)
    )


def _to_json(fact: AttemptFact) -> dict[str, Any]:
    """Outputs have rows of their own."""
    return dict(json.loads(json.dumps(dataclasses.asdict(fact) | {"outputs": []})))


def _note_members(run: Run, part: AttemptNode, fact: AttemptFact) -> None:
    told = {member.rank: member for member in fact.members}
    for row in Member.objects.filter(attempt=part.attempt, node_id=part.node_id, rank__in=told):
        member = told[row.rank]
        state = outcomes.member_state(member)
        if row.state in MEMBER_FINAL and state not in MEMBER_FINAL:
            continue
        fields = {
            "state": state, "pid": member.pid, "exit_code": member.exit_code, "signal": member.signal,
            "log_bytes": member.log_bytes, "started_at": _time(member.started_at), "ended_at": _time(member.ended_at),
        }
        if all(getattr(row, name) == value for name, value in fields.items()):
            continue
        Member.objects.filter(pk=row.pk).update(**fields)
        publish_on_commit(
            run_topic(run.pk),
            {"type": "member.changed", "run": run.pk, "attempt": fact.attempt, "rank": row.rank, "state": state.value},
        )


def _note_warnings(attempt: Attempt, node: Node, warnings: Sequence[str]) -> None:
    new = [warning for warning in dict.fromkeys(warnings) if warning not in attempt.warnings]
    if not new or len(attempt.warnings) >= MAX_WARNINGS:
        return
    attempt.warnings = [*attempt.warnings, *new][:MAX_WARNINGS]
    Attempt.objects.filter(pk=attempt.pk).update(warnings=attempt.warnings)
    for warning in new:
        lifecycle.note(attempt.run_id, warning, actor=f"node {node.name}", attempt=attempt.number)


def _note_outputs(run: Run, part: AttemptNode, outputs: Sequence[OutputFile]) -> bool:
    """A row for every output whose bytes are here; False when some are not."""
    if not outputs:
        return True
    rows = {row.path: row for row in Artifact.objects.filter(run=run, attempt=part.attempt.number)}
    whole = True
    for output in outputs:
        if not _is_inside(output.path):
            log.warning("Node %s names an output of run %s outside outputs/: %r", part.node.name, run.pk, output.path)
            continue
        path = output.path
        held = rows.get(path)
        if held is not None and held.sha256 != output.sha256 and part.node_rank > 0:
            path = f"node_{part.node_rank}/{path}"
            held = rows.get(path)
        if held is not None and held.sha256 == output.sha256:
            continue
        if not blobs.exists(output.sha256):
            whole = False
            continue
        rows[path], _ = Artifact.objects.update_or_create(
            run=run, attempt=part.attempt.number, path=path,
            defaults={"sha256": output.sha256, "size_bytes": blobs.path(output.sha256).stat().st_size},
        )
    return whole


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    plain = str(pure) == path and "\x00" not in path and len(path) <= 900
    return plain and not pure.is_absolute() and ".." not in pure.parts and path not in ("", ".")


def _move_run(run: Run, attempt: Attempt, node: Node, now: datetime) -> None:
    """Walk the run to where its parts say it is, each step at the time that the nodes tell."""
    if attempt.ended_at is not None or run.attempt != attempt.number:
        return
    decides: dict[int, dict[int, bool]] = {}
    for node_id, rank, decisive in Member.objects.filter(attempt=attempt).values_list("node_id", "rank", "decides"):
        decides.setdefault(node_id, {})[rank] = decisive
    rows = list(AttemptNode.objects.filter(attempt=attempt).select_related("node").order_by("node_rank"))
    parts = [part_of(row, decides.get(row.node_id, {})) for row in rows]
    canceled_by, timeout_s = _canceled_by(run), run.spec["limits"]["timeout_s"]
    verdict = outcomes.derive(parts, canceled_by=canceled_by, timeout_s=timeout_s)
    if verdict.failing and not attempt.failing:
        _end_gang(run, attempt, rows, node)
    if attempt.failing or canceled_by is not None:
        # A part that nobody has claimed will not be claimed any more: it is not waited for.
        parts = [part for part, row in zip(parts, rows, strict=True) if row.claimed_at is not None]
        verdict = outcomes.derive(parts, canceled_by=canceled_by, timeout_s=timeout_s)
    actor, since = f"node {node.name}", run.state_since
    for phase, state in _STATE_OF_PHASE.items():
        if not _reached(parts, phase, verdict):
            continue
        times = _times(parts, phase) or _times(parts, "done") or [now.timestamp()]
        at = _clamped(min(times) if phase == "running" else max(times), since, now)
        if lifecycle.advance(run.pk, state, actor=actor, attempt=attempt.number, at=at):
            since = at
    if verdict.reason:
        at = _clamped(max(_times(parts, "done"), default=now.timestamp()), since, now)
        end(run.pk, attempt.number, verdict.reason, verdict.facts, actor=actor, at=at)


def _reached(parts: Sequence[outcomes.Part], phase: str, verdict: outcomes.Verdict) -> bool:
    if verdict.reason is Reason.COMPLETED:
        return True
    if phase == "uploading" and verdict.state is RunState.FINALIZING:
        return True
    return bool(_times(parts, phase)) and (phase == "running" or bool(verdict.reason))


def _times(parts: Sequence[outcomes.Part], phase: str) -> list[float]:
    return [part.fact.phase_at[phase] for part in parts if part.fact and phase in part.fact.phase_at]


def _end_gang(run: Run, attempt: Attempt, rows: Sequence[AttemptNode], told_by: Node) -> None:
    """One dead rank ends the whole gang, on the other nodes too: they learn it from the answer to their next report."""
    attempt.failing = True
    attempt.save(update_fields=["failing"])
    for row in rows:
        if row.node_id != told_by.pk:
            wake_soon(row.node, run.pk, attempt.number)


def _canceled_by(run: Run) -> str | None:
    return str(run.facts.get("who", "")) if run.state == RunState.CANCEL_REQUESTED else None


def _clamped(seconds: float, since: datetime, now: datetime) -> datetime:
    """A node's clock may be off: no step of a run lies before the last one, or in the future."""
    return min(max(_time(seconds) or now, since), now)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
