"""The checkpoints of runs. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from datastores.models import Datastore
from jobs.checkpoints.states import HIDDEN, CheckpointState

if TYPE_CHECKING:
    from jobs.models import Run


class CheckpointRows(models.QuerySet["Checkpoint"]):
    def shown(self, run: Run) -> CheckpointRows:
        """Returns those of the run that people are shown."""
        return self.filter(run=run).exclude(state__in=HIDDEN).select_related("datastore")


class Checkpoint(models.Model):
    """What the ranks of an attempt have saved at one time. Only `jobs.checkpoints.collecting` writes its
    state.

    `number` counts those of the run; `name`: of the file or folder that it is. `attempt` 0: it was copied
    from another run, `origin`, when this one was submitted. `sign`: what showed that it is complete (Sign).
    `detail`: why it is torn. `store_path`: the whole path in the store of `datastore` below which files of it
    may lie, "" = nothing of it is in a datastore."""

    run = models.ForeignKey("jobs.Run", models.CASCADE, related_name="checkpoints")
    attempt = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    sign = models.CharField(max_length=16, blank=True)
    state = models.CharField(
        max_length=16, choices=CheckpointState.choices, default=CheckpointState.COLLECTING
    )
    origin = models.CharField(max_length=100, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    file_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)
    datastore = models.ForeignKey(Datastore, models.SET_NULL, null=True, related_name="+")
    store_path = models.CharField(max_length=2048, blank=True, default="", db_default="")

    objects = CheckpointRows.as_manager()

    class Meta:
        app_label = "jobs"
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="checkpoint_number_once")]
        indexes = [
            models.Index(fields=["run"], condition=models.Q(state="collecting"), name="checkpoint_collecting")
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.number} ({self.name})"

    @property
    def place(self) -> str:
        """The folder of a datastore in which it lies, in one line; "" = on the hub."""
        if not self.store_path or self.state == CheckpointState.TORN:
            return ""
        if self.datastore is None:
            return f"{self.store_path} in a datastore that is not there any more"
        return self.datastore.place_of(self.store_path)


class CheckpointPart(models.Model):
    """That a node has delivered its part of a checkpoint. `version`: of the entry on that node, as the node
    announced it."""

    checkpoint = models.ForeignKey(Checkpoint, models.CASCADE, related_name="parts")
    node_rank = models.PositiveIntegerField()
    version = models.CharField(max_length=64, blank=True)
    is_delivered = models.BooleanField(default=False)

    class Meta:
        app_label = "jobs"
        constraints = [
            models.UniqueConstraint(fields=["checkpoint", "node_rank"], name="checkpoint_part_once")
        ]

    def __str__(self) -> str:
        return f"node {self.node_rank}'s part of {self.checkpoint}"


class CheckpointFile(models.Model):
    """A file of a checkpoint; `sha256` names its blob. `path`: below the folder of checkpoints."""

    checkpoint = models.ForeignKey(Checkpoint, models.CASCADE, related_name="files")
    node_rank = models.PositiveIntegerField()
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        app_label = "jobs"
        ordering = ["path", "node_rank"]
        constraints = [
            models.UniqueConstraint(fields=["checkpoint", "node_rank", "path"], name="checkpoint_file_once")
        ]

    def __str__(self) -> str:
        return self.path


class StoredCheckpointFile(models.Model):
    """A file of a checkpoint that lies in the datastore of that, as the node that wrote it has said. `path`:
    below the folder of checkpoints; `key`: below `store_path` of the checkpoint, where a file of the same
    content may be that of an earlier checkpoint. `digest`: its SHA-256, which
    names no stored file of the hub, as in StoredOutput."""

    checkpoint = models.ForeignKey(Checkpoint, models.CASCADE, related_name="stored_files")
    node_rank = models.PositiveIntegerField()
    path = models.CharField(max_length=1000)
    key = models.CharField(max_length=1100)
    size_bytes = models.BigIntegerField()
    digest = models.CharField(max_length=64)

    class Meta:
        app_label = "jobs"
        ordering = ["path", "node_rank"]
        constraints = [
            models.UniqueConstraint(
                fields=["checkpoint", "node_rank", "path"], name="stored_checkpoint_file_once"
            )
        ]

    def __str__(self) -> str:
        return self.path


class FinalFolder(models.Model):
    """The names of what lay in the folder of checkpoints of a node when its ranks had ended."""

    part = models.OneToOneField("jobs.AttemptNode", models.CASCADE, related_name="final_checkpoints")
    names = models.JSONField(default=list)

    class Meta:
        app_label = "jobs"

    def __str__(self) -> str:
        return ", ".join(self.names)
