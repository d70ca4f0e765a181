"""Experiments, runs and their attempts. Only `jobs.lifecycle` writes the state of jobs."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from clusters.models import Node
from datastores.models import Datastore
from jobs.builds.models import EnvironmentBuild as EnvironmentBuild  # noqa: PLC0414  # exported
from jobs.checkpoints.models import Checkpoint as Checkpoint  # noqa: PLC0414  # exported
from jobs.checkpoints.models import CheckpointFile as CheckpointFile  # noqa: PLC0414  # exported
from jobs.checkpoints.models import CheckpointPart as CheckpointPart  # noqa: PLC0414  # exported
from jobs.checkpoints.models import FinalFolder as FinalFolder  # noqa: PLC0414  # exported
from jobs.checkpoints.models import StoredCheckpointFile as StoredCheckpointFile  # noqa: PLC0414  # exported
from jobs.data_orders.models import DataOrder as DataOrder  # noqa: PLC0414  # exported
from jobs.hub_files.models import FileFetch as FileFetch  # noqa: PLC0414  # exported
from jobs.lineage.models import DatasetOrigin as DatasetOrigin  # noqa: PLC0414  # exported
from jobs.lineage.models import DatasetUse as DatasetUse  # noqa: PLC0414  # exported
from jobs.log_shipping.models import LogTarget as LogTarget  # noqa: PLC0414  # exported
from jobs.logs.models import ArchivedLog as ArchivedLog  # noqa: PLC0414  # exported
from jobs.logs.models import LogArchive as LogArchive  # noqa: PLC0414  # exported
from jobs.prepared_environments import PreparedEnvironment as PreparedEnvironment  # noqa: PLC0414  # exported
from jobs.querysets import COUNT_COLUMNS, RunQuerySet
from jobs.retention_rules.models import DataRemoval as DataRemoval  # noqa: PLC0414  # exported
from jobs.retention_rules.models import RetentionRule as RetentionRule  # noqa: PLC0414  # exported
from jobs.retention_rules.models import RuleInForce as RuleInForce  # noqa: PLC0414  # exported
from jobs.sources.models import FetchedCommit as FetchedCommit  # noqa: PLC0414  # exported
from jobs.sources.models import Snapshot as Snapshot  # noqa: PLC0414  # exported
from jobs.states import MemberState, Reason, RunKind, RunState
from jobs.stored_outputs.models import OutputFolder as OutputFolder  # noqa: PLC0414  # exported
from jobs.stored_outputs.models import StoredOutput as StoredOutput  # noqa: PLC0414  # exported
from jobs.transfer.models import UploadedBlob as UploadedBlob  # noqa: PLC0414  # exported
from jobs.version_builds.models import BuildFile as BuildFile  # noqa: PLC0414  # exported
from workspaces.models import User, Workspace


def new_run_id() -> str:
    """Returns a new run id of 32 hex digits, which is also the run's MLflow id."""
    return uuid.uuid4().hex


class Experiment(models.Model):
    """A named group of runs. `tags`: {key: value}. `deleted_at`: when it was deleted together with its
    runs."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=500)
    tags = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="experiment_name_once")]

    def __str__(self) -> str:
        return self.name


class Run(models.Model):
    """A submitted job or, with `kind` external, a run that a client logged, without spec and attempts.

    `spec`: RunSpec JSON. `preview`: the plan shown before submission. `facts`: values for the reason's
    sentence. `parent`: the job whose process logged this run, or the run that its client nested it in.
    `cloned_from`: the run whose spec this one was started from; None if there is none, or it is purged.
    `pinned`: every comparison of the workspace shows it. Lists omit archived runs; deleted ones are purged
    some days later."""

    id = models.CharField(primary_key=True, max_length=32, default=new_run_id, editable=False)
    number = models.PositiveIntegerField()
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="runs")
    experiment = models.ForeignKey(Experiment, models.PROTECT, related_name="runs")
    kind = models.CharField(max_length=16, default=RunKind.JOB)
    display_name = models.CharField(max_length=500)
    spec = models.JSONField(default=dict)
    parent = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children")
    cloned_from = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="clones")
    preview = models.JSONField(null=True)
    state = models.CharField(
        max_length=16, default=RunState.QUEUED, choices=[(s.value, s.value) for s in RunState], db_index=True
    )
    reason = models.CharField(
        max_length=32, default=Reason.NONE, choices=[(r.value, r.value) for r in Reason], blank=True
    )
    facts = models.JSONField(default=dict)
    attempt = models.PositiveIntegerField(
        default=0, help_text="Number of the latest attempt; 0 before the first."
    )
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="runs")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text="First entered Running.")
    finished_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    state_since = models.DateTimeField(default=timezone.now)
    idempotency_key = models.CharField(max_length=128, null=True, blank=True)
    pinned = models.BooleanField(default=False)
    priority = models.SmallIntegerField(default=0, help_text="Higher is placed first.")
    claimed_at = models.DateTimeField(null=True, help_text="Since when it is at the head of its cluster.")

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="run_number_once"),
            models.UniqueConstraint(fields=["workspace", "idempotency_key"], name="idempotency_key_once"),
        ]
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="run_newest"),
            models.Index(fields=["experiment", "-created_at"], name="run_of_experiment"),
            models.Index(fields=["deleted_at"], condition=~models.Q(deleted_at=None), name="run_deleted"),
            models.Index(fields=["workspace", "-finished_at"], name="run_ended"),
            models.Index(fields=COUNT_COLUMNS, condition=models.Q(deleted_at=None), name="run_state_counts"),
            models.Index(fields=["workspace"], condition=models.Q(pinned=True), name="run_pinned"),
        ]  # and those of migrations 0037 and 0039, on PostgreSQL alone

    def __str__(self) -> str:
        return f"run {self.number}"

    @property
    def sentence(self) -> str:
        """Returns the reason for the run's state as a sentence, or "" without a reason."""
        return Reason(self.reason).sentence(**self.facts) if self.reason else ""


class RunTag(models.Model):
    """A tag of a run. `short`: the start of the value, which the search index covers."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="tags", db_index=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=250)
    value = models.TextField(blank=True)
    short = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="tag_once_per_run")]
        indexes = [models.Index(fields=["experiment", "key", "short", "run"], name="tag_found")]


class Attempt(models.Model):
    """One attempt of a run. `plan`: the plan that ran, stored with the claim. `token_digest`: emptied when
    the attempt ends. `restores`: the checkpoint with which it began; `pending_checkpoints`: [number, name] of
    those that are being collected from its nodes. By the name of the input, `inputs`: absolute paths of data
    that lies on its nodes; `mounts`: what lies in shares that they mount (InputMount JSON); `downloads`: what
    they download (DataDownload JSON); `references`: as `downloads`, of what scripts read by addresses;
    `input_lists`: the files that some of `inputs` and `mounts` must have (InputList JSON).

    `checkpoint_path`: the whole path in the store of `checkpoint_datastore` below which its nodes write
    checkpoints, "" = they send them to the hub."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    placement = models.JSONField()
    plan = models.JSONField(null=True)
    token_digest = models.CharField(max_length=64, blank=True, db_index=True)
    warnings = models.JSONField(default=list)
    failing = models.BooleanField(
        default=False, help_text="It cannot succeed any more: every node is to end its part."
    )
    served = models.BooleanField(
        default=False, help_text="Every deciding rank has succeeded: those that only serve are to end."
    )
    cause = models.JSONField(
        null=True, help_text="Why it failed, as read out of the ranks' logs (jobs.causes); null: not read."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    preempted_by = models.CharField(max_length=100, blank=True, db_default="", default="")
    restores = models.ForeignKey(Checkpoint, models.SET_NULL, null=True, related_name="restored_by")
    pending_checkpoints = models.JSONField(default=list, db_default=[])
    inputs = models.JSONField(default=dict, db_default={})
    downloads = models.JSONField(default=dict, db_default={})
    references = models.JSONField(default=dict, db_default={})
    input_lists = models.JSONField(default=dict, db_default={})
    mounts = models.JSONField(default=dict, db_default={})
    checkpoint_datastore = models.ForeignKey(Datastore, models.SET_NULL, null=True, related_name="+")
    checkpoint_path = models.CharField(max_length=2048, blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="attempt_number_once")]


class AttemptNode(models.Model):
    """One node's part of an attempt: its claim, and in `fact` the last report about it (AttemptFact JSON)."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="parts")
    node = models.ForeignKey(Node, models.PROTECT, related_name="parts")
    node_rank = models.PositiveIntegerField()
    nonce = models.CharField(
        max_length=32, blank=True, help_text="Set by the first claim; only the same one is answered again."
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    ports = models.JSONField(default=list, help_text="Free there when the node last asked for its part.")
    daemon = models.JSONField(
        default=list, help_text="argv of the MPI daemon that the head wants here; the first call holds."
    )
    phase = models.CharField(max_length=16, blank=True)
    fact = models.JSONField(default=dict)
    settled_at = models.DateTimeField(null=True, blank=True)
    sends_unrecorded = models.BooleanField(
        default=False, help_text="Claimed before the hub recorded which files a node sends."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "node"], name="one_part_per_node")]
        indexes = [models.Index(fields=["settled_at"], name="part_settled")]


class SentBlob(models.Model):
    """A file (SHA-256 `digest`) that a node sent while it held this part, so that it may name it as an
    output.

    The row does not protect the file from garbage collection; it is deleted soon after the part is
    settled."""

    part = models.ForeignKey(AttemptNode, models.CASCADE, related_name="sent_blobs")
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["part", "digest"], name="blob_sent_once_per_part")]


class Member(models.Model):
    """One planned process of an attempt and its state. `rank` counts from 0 over all nodes."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="members")
    node = models.ForeignKey(Node, models.PROTECT, related_name="+")
    rank = models.PositiveIntegerField()
    local_rank = models.PositiveIntegerField()
    role = models.CharField(max_length=16, blank=True)
    log_name = models.CharField(max_length=128)
    gpus = models.JSONField(default=list)
    decides = models.BooleanField(default=True)
    state = models.CharField(
        max_length=16, default=MemberState.WAITING, choices=[(s.value, s.value) for s in MemberState]
    )
    pid = models.PositiveIntegerField(null=True)
    exit_code = models.IntegerField(null=True)
    signal = models.PositiveIntegerField(null=True)
    log_bytes = models.BigIntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "rank"], name="rank_once_per_attempt")]
        ordering = ["rank"]


class RunEvent(models.Model):
    """An entry of a run's append-only event log."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    attempt = models.PositiveIntegerField(default=0)
    from_state = models.CharField(max_length=16, blank=True)
    to_state = models.CharField(
        max_length=16, blank=True, help_text="Empty: something happened, the state stayed."
    )
    reason = models.CharField(max_length=32, blank=True)
    message = models.TextField(blank=True)
    actor = models.CharField(max_length=150, blank=True, help_text="A person's name, 'node NAME', or 'hub'.")

    class Meta:
        ordering = ["id"]


class Artifact(models.Model):
    """An output file of a run: uploaded from outputs/ or logs/ after an attempt, or logged by its script.
    `sha256` names the blob with its bytes. Files of external runs belong to attempt 0. `node_rank`: the node
    that uploaded the file; None for a logged one."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="artifacts")
    attempt = models.PositiveIntegerField()
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    node_rank = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "attempt", "path"], name="artifact_path_once")]
        ordering = ["path"]


class Draft(models.Model):
    """A draft of the wizard: the raw form data of each step as typed. Its id is part of the page's URL.
    `cloned_from`: the run with whose spec it began."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="drafts")
    user = models.ForeignKey(User, models.CASCADE, related_name="drafts")
    steps = models.JSONField(default=dict)
    cloned_from = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    submitted_run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
