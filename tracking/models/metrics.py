"""Logged metrics in packed form (`tracking.metrics`; docs/adr/0008)."""

from __future__ import annotations

from django.db import models

from jobs.models import Experiment, Run
from workspaces.set_aside import SetAsideModel


class Metric(models.Model):
    """One curve of a run, with its last point (of the highest step), min, max and count.

    NaN is null in `last_value`; `min_value` and `max_value` ignore NaN and are null if all values are NaN.
    """

    # The constraint and the indexes below begin with these columns, so the keys need no index of their own.
    run = models.ForeignKey(Run, models.CASCADE, related_name="metrics", db_index=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=250)
    count = models.BigIntegerField(default=0)
    last_value = models.FloatField(null=True)
    last_step = models.BigIntegerField(default=0)
    last_ms = models.BigIntegerField(default=0)
    min_value = models.FloatField(null=True)
    max_value = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="metric_once_per_run")]
        # The value and the run are part of the index, so that a search reads the index only.
        indexes = [
            models.Index(fields=["experiment", "key", "last_value", "run"], name="metric_last"),
            models.Index(fields=["experiment", "key", "min_value", "run"], name="metric_min"),
            models.Index(fields=["experiment", "key", "max_value", "run"], name="metric_max"),
        ]


class MetricSlice(SetAsideModel):
    """Points of one request, of all its curves. Slices are folded into blocks when there are enough."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    points = models.PositiveIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "slice of metrics"
        verbose_name_plural = "slices of metrics"


class MetricBlock(models.Model):
    """Points of one curve in the order of logging; `number` counts the curve's blocks from 0."""

    # The constraint below serves as the index.
    metric = models.ForeignKey(Metric, models.CASCADE, related_name="blocks", db_index=False)
    number = models.PositiveIntegerField()
    points = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metric", "number"], name="block_once_per_metric")]


class EventFile(models.Model):
    """How far a TensorBoard event file of an attempt has been read. `name` is the file's path among the logs
    or outputs of the attempt."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="event_files")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=1000)
    read_bytes = models.BigIntegerField(default=0)
    is_whole = models.BooleanField(default=False)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "attempt", "name"], name="event_file_once")]
