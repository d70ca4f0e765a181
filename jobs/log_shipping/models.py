"""Log systems that get the lines of runs, and how far each is.

Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from django.db import models

from workspaces.models import Workspace


class LogTarget(models.Model):
    """A log system that gets the lines of the runs of a workspace, or of all. `workspace`: None for that of
    the hub's settings, whose address and headers are there and not here.

    `headers`, `labels`, `ca`: as their owner wrote them; `headers` may name secrets. `since`: attempts that
    began earlier are not shipped. `last_attempt`: every attempt up to this id has its row of progress, if it
    needs one. `lines`, `bytes`: accepted so far. `refused_lines`: those that it will never accept. `try_at`:
    when it is tried next; `failures`, `failing_since`: of tries that failed since the last that did not.
    `behind_bytes`, `behind_since`: what waits, and when the oldest of it arrived; of the last round.

    `test_by`: who wants a test line to be sent, "" = nobody; `test_result`: a sentence about the last one."""

    workspace = models.OneToOneField(Workspace, models.CASCADE, null=True, related_name="log_target")
    kind = models.CharField(max_length=8)
    url = models.CharField(max_length=1000, blank=True)
    headers = models.TextField(blank=True)
    labels = models.CharField(max_length=1000, blank=True)
    ca = models.TextField(blank=True)
    since = models.DateTimeField()
    last_attempt = models.BigIntegerField(default=0)
    lines = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    refused_lines = models.BigIntegerField(default=0)
    last_refusal = models.CharField(max_length=400, blank=True)
    last_accepted_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=400, blank=True)
    failing_since = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    try_at = models.DateTimeField()
    test_by = models.CharField(max_length=150, blank=True)
    test_result = models.CharField(max_length=400, blank=True)
    behind_bytes = models.BigIntegerField(default=0)
    behind_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                models.Value(1), condition=models.Q(workspace=None), name="one_log_target_of_the_hub"
            )
        ]

    def __str__(self) -> str:
        return f"the log system of {self.workspace}" if self.workspace_id else "the log system of the hub"


class LogProgress(models.Model):
    """How far the logs of an attempt are shipped to a target. `offsets`: the name of a log -> the bytes of it
    that are settled. `is_over`: everything is shipped, and nothing more will come."""

    target = models.ForeignKey(LogTarget, models.CASCADE, related_name="progress")
    attempt = models.ForeignKey("jobs.Attempt", models.CASCADE, related_name="+")
    offsets = models.JSONField(default=dict)
    is_over = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "attempt"], name="log_progress_once")]
        indexes = [
            models.Index(fields=["target"], condition=models.Q(is_over=False), name="log_progress_open")
        ]
