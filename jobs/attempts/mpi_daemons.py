"""MPI over several nodes: the head's mpirun needs its daemon on the other nodes, and the hub forwards the
call.

The arguments come from a process of the run's own account on the head. To keep training code from starting
arbitrary programs on other nodes, the hub accepts one call per node, only from the head, only while the
attempt starts, and only for a node of this placement. The node starts only its own daemon and checks the
parameters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import PurePosixPath

from jobs.models import Attempt, AttemptNode, Run
from jobs.states import RunState
from jobs.task_messages import wake_soon
from trainhub_launch.plan import RSH_AGENT
from trainhub_launch.report import AttemptFact, DaemonCall
from trainhub_launch.states import Phase

log = logging.getLogger(__name__)
PROGRAMS = frozenset({"orted", "prted"})
MAX_ARGUMENTS = 256
MAX_CHARACTERS = 64 * 1024
LAUNCHING = (Phase.READY, Phase.RUNNING)


def store_calls(run: Run, part: AttemptNode, fact: AttemptFact) -> None:
    """Stores the head's first call for each node and wakes that node. Ignores every other call."""
    if not fact.daemons or not _may_call(run, part):
        return
    parts = list(
        AttemptNode.objects.filter(attempt=part.attempt).select_related("node").order_by("node_rank")
    )
    # At most one call for each node; a run that controls its head could send any number.
    for call in fact.daemons[: len(parts)]:
        target = _target_part(part, parts, call)
        if target is None:
            log.warning("Run %s: ignored a call for an MPI daemon on %r", run.pk, call.host[:100])
        # Only the first call counts: mpirun makes one, and a later one could start another program.
        elif not target.daemon and target.phase == Phase.READY:
            target.daemon = list(call.argv)
            AttemptNode.objects.filter(pk=target.pk).update(daemon=target.daemon)
            wake_soon(target.node, run.pk, part.attempt.number)


def _may_call(run: Run, part: AttemptNode) -> bool:
    attempt = part.attempt
    is_over = (
        attempt.ended_at is not None or attempt.failing or attempt.served or run.attempt != attempt.number
    )
    is_starting = run.state in (RunState.PREPARING, RunState.RUNNING) and part.phase in LAUNCHING
    return part.node_rank == 0 and not is_over and is_starting and _launcher_calls_daemons(attempt)


def _launcher_calls_daemons(attempt: Attempt) -> bool:
    """Returns whether the plan's launcher on the head needs the hub's help to reach the other nodes."""
    commands = (attempt.plan or {}).get("commands") or [{}]
    return RSH_AGENT in commands[0].get("launcher", ())


def _target_part(head: AttemptNode, parts: Sequence[AttemptNode], call: DaemonCall) -> AttemptNode | None:
    """Returns the part of the node that the call names.

    Returns None if the call names no other node of the placement, or a program that is no MPI daemon."""
    placed = head.attempt.placement
    is_plausible = (
        0 < len(call.argv) <= MAX_ARGUMENTS
        and sum(map(len, call.argv)) <= MAX_CHARACTERS
        and not any("\0" in word for word in call.argv)
        and PurePosixPath(call.argv[0]).name in PROGRAMS
    )
    if not is_plausible or call.host == placed[0]["address"]:
        return None
    return next((part for part in parts[1:] if placed[part.node_rank]["address"] == call.host), None)
