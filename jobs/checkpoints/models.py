"""The checkpoints of runs. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from jobs.checkpoints.states import CheckpointState


class Checkpoint(models.Model):
    """What the ranks of an attempt have saved at one time. Only `jobs.checkpoints.collecting` writes its
    state.

    `number` counts those of the run; `name`: of the file or folder that it is. `attempt` 0: it was copied
    from another run, `origin`, when this one was submitted. `sign`: what showed that it is complete (Sign).
    `detail`: why it is torn."""

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

    class Meta:
        app_label = "jobs"
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="checkpoint_number_once")]
        indexes = [
            models.Index(fields=["run"], condition=models.Q(state="collecting"), name="checkpoint_collecting")
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.number} ({self.name})"


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


class FinalFolder(models.Model):
    """The names of what lay in the folder of checkpoints of a node when its ranks had ended."""

    part = models.OneToOneField("jobs.AttemptNode", models.CASCADE, related_name="final_checkpoints")
    names = models.JSONField(default=list)

    class Meta:
        app_label = "jobs"

    def __str__(self) -> str:
        return ", ".join(self.names)
