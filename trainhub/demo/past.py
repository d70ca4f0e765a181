"""Writes the past of the demo: people submit runs, nodes claim and report them, and the clock of this process
shows the time at which that happened."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import celery
import time_machine

from clusters.models import Node
from clusters.telemetry import compaction
from jobs import run_curves
from jobs.models import Run
from jobs.tags import set_tags
from registry import aliases, registration
from tracking import notes
from tracking.usage import accounting
from trainhub.demo import gpu_load
from trainhub.demo.environments import write_environments
from trainhub.demo.played_node import PlayedNode
from trainhub.demo.replay import MODEL_PATH, Replay
from trainhub.demo.story import DAYS, MODEL, PAST, PEOPLE, PastRun
from trainhub.demo.training import Training
from trainhub_launch.machine import GpuFact, Interpreter
from workspaces import people
from workspaces.access import Principal, membership_principal
from workspaces.models import User
from workspaces.states import Role

# When a run and the measurements of its GPUs are complete, and the worker would fold and account them.
SETTLED_AFTER_S = 20 * 60.0


@dataclass(frozen=True)
class Fleet:
    """`gpus`: those of each node, by its name. `training`: the folder that runs start from; `snapshot`: its
    id."""

    gpus: Mapping[str, tuple[GpuFact, ...]]
    training: Path
    snapshot: str

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], snapshot: str) -> Fleet:
        gpus = {node["name"]: tuple(GpuFact(**gpu) for gpu in node["gpus"]) for node in facts["nodes"]}
        return cls(gpus, Path(facts["training"]), snapshot)


def write(fleet: Fleet, owner: Principal) -> None:
    """Writes all runs of the story, unless the workspace has runs already."""
    if Run.objects.filter(workspace=owner.workspace).exists():
        return
    # Nobody is to act on messages of the past: they stay in this process.
    celery.current_app.conf.update(broker_url="memory://")
    now = datetime.now(UTC)
    interpreter = Interpreter(sys.executable, platform.python_version())
    rows = Node.objects.filter(name__in=[name for name, gpus in fleet.gpus.items() if gpus])
    nodes = {
        # An address of the block that is reserved for documents.
        row.name: PlayedNode(row, f"192.0.2.{row.pk}", fleet.gpus[row.name], interpreter)
        for row in rows
    }
    training = Training(fleet.training)
    with time_machine.travel(now - timedelta(days=DAYS), tick=False) as clock:
        staff = {name: _member(owner, name) for name in PEOPLE}
        write_environments(staff, clock, now)
        for past_run in PAST:
            clock.move_to(now - timedelta(days=past_run.days))
            for node in nodes.values():
                node.report()
            replay = Replay(clock, past_run, training.record(past_run), nodes)
            run = replay.play(fleet.snapshot, staff[past_run.person])
            clock.shift(SETTLED_AFTER_S)
            _settle()
            _add_words(run, past_run, staff[past_run.person])
        clock.move_to(now)
        for node in nodes.values():
            node.report(buckets=gpu_load.idle([gpu.uuid for gpu in node.gpus], time.time()))


def _member(owner: Principal, name: str) -> Principal:
    # A start that was interrupted before the first run may have added this person.
    if not User.objects.filter(username=name).exists():
        people.add(owner, name, Role.CONTRIBUTOR)
    who = membership_principal(User.objects.get(username=name))
    if who is None:
        raise RuntimeError(f"{name} was added and is a member of no workspace")
    return who


def _settle() -> None:
    """Does what the worker does periodically: measurements and GPU-hours of the run become final."""
    compaction.fold_due_nodes(time.time())
    run_curves.store_ended_curves()
    accounting.account_recent()


def _add_words(run: Run, past_run: PastRun, who: Principal) -> None:
    if past_run.note:
        set_tags(run, {notes.TAG: past_run.note})
    if past_run.version is None:
        return
    description = past_run.version.description
    version = registration.register(run.workspace, MODEL, run, MODEL_PATH, who.user, description=description)
    if past_run.version.alias:
        aliases.set_alias(version.model, past_run.version.alias, version.number, who.user)
