"""Runs with some of every kind of data, that ended long ago, and rules for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from clusters.models import StoredSeries
from jobs.logs import log_store
from jobs.models import (
    Artifact,
    Attempt,
    Checkpoint,
    CheckpointFile,
    DataRemoval,
    Experiment,
    Member,
    RuleInForce,
    Run,
)
from jobs.retention_rules import previews, removal_round, rule_changes
from jobs.retention_rules.rule_changes import GRACE
from jobs.retention_rules.rules import Rule
from jobs.states import DataKind, RunState
from tests.jobs.builders import node
from tracking.metrics.point_writer import Point, append
from tracking.models import LoggedModel, LoggedModelFile, Metric, MetricBlock, Param
from workspaces.access import Principal
from workspaces.models import User, Workspace
from workspaces.stored_files.blob_writer import BlobWriter

LOG = "70_driver_log.txt"
LOG_TEXT = b"one line\n"
ALL = tuple(DataKind)


def stored_file(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish()


def old_run(who: Principal, days: float = 40, *, state: RunState = RunState.COMPLETED, **more: Any) -> Run:
    """A run that ended so many days ago, with something of every kind."""
    at = timezone.now() - timedelta(days=days)
    number = 1 + Run.objects.filter(workspace=who.workspace).count()
    experiment, _ = Experiment.objects.get_or_create(workspace=who.workspace, name="old")
    run = Run.objects.create(
        number=number,
        workspace=who.workspace,
        experiment=experiment,
        display_name=f"old {number}",
        spec={"script": "train.py", "source": {"type": "snapshot", "id": "0" * 64}},
        state=state,
        attempt=1,
        created_by=who.user,
        started_at=at,
        finished_at=at,
        **more,
    )
    Run.objects.filter(pk=run.pk).update(created_at=at)
    attempt = Attempt.objects.create(run=run, number=1, placement={}, ended_at=at)
    Member.objects.create(
        attempt=attempt, node=node(), rank=0, local_rank=0, log_name=LOG, log_bytes=len(LOG_TEXT)
    )
    log_store.append(run.pk, 1, LOG, 0, LOG_TEXT)
    log_store.append(run.pk, 1, "logs/events.out.tfevents.1", 0, b"event")
    _add_files(run, f"{number}".encode())
    append(run.pk, experiment.pk, [Point("loss", 1 / (step + 1), step, 1000 + step) for step in range(9)])
    MetricBlock.objects.create(metric=Metric.objects.get(run=run), number=0, points=0, data=b"1234")
    Param.objects.create(run=run, experiment=experiment, key="lr", value="0.1")
    StoredSeries.objects.create(
        holder=run.pk, attempt=1, node_name="alpha", subject="", step_s=10, start=0, data=b"12345"
    )
    return run


def _add_files(run: Run, content: bytes) -> None:
    size = len(content)
    Artifact.objects.create(run=run, attempt=1, path="model.pt", size_bytes=size, sha256=stored_file(content))
    checkpoint = Checkpoint.objects.create(
        run=run, attempt=1, number=1, name="step-1", state="complete", size_bytes=2, file_count=1
    )
    CheckpointFile.objects.create(
        checkpoint=checkpoint, node_rank=0, path="step-1/a", size_bytes=2, sha256=stored_file(b"c" + content)
    )
    model = LoggedModel.objects.create(experiment=run.experiment, run=run, name="net")
    LoggedModelFile.objects.create(model=model, path="a", size_bytes=3, sha256=stored_file(b"m" + content))


def set_rule(workspace: Workspace, who: User, rule: Rule | None, *kinds: DataKind) -> None:
    """Sets a rule as a page does: with the confirmation of its preview."""
    choices = dict.fromkeys(kinds or ALL, rule)
    confirmation = previews.preview_own(workspace, choices).confirmation
    rule_changes.set_own(workspace, choices, who, confirmation)


def after_grace() -> datetime:
    return timezone.now() + GRACE + timedelta(minutes=1)


def in_force(workspace: Workspace, rule: Rule, *kinds: DataKind) -> None:
    """Puts a rule in force without a grace."""
    for kind in kinds or ALL:
        RuleInForce.objects.update_or_create(
            workspace=workspace,
            kind=kind,
            defaults={"days": rule.days, "only_unsuccessful": rule.only_unsuccessful},
        )


def removed(run: Run) -> set[str]:
    """The kinds of data that are gone of the run."""
    return set(DataRemoval.objects.filter(run=run).exclude(done_at=None).values_list("kind", flat=True))


def remove_all(who: Principal, rule: Rule | None = None, *kinds: DataKind) -> int:
    """Sets the rule, and returns of how many runs the first round after its grace removes something."""
    set_rule(who.workspace, who.user, rule or Rule(30), *kinds)
    return removal_round.remove_due(after_grace())
