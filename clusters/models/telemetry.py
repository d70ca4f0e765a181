"""Models of packed telemetry (`clusters.telemetry`; docs/adr/0007)."""

from __future__ import annotations

from django.db import models

from clusters.models.nodes import Node
from workspaces.set_aside import SetAsideModel


class TelemetrySlice(SetAsideModel):
    """The newest buckets as they came: all subjects of one node at one moment. Folded into chunks when they
    are complete."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="+", db_index=False)
    start = models.BigIntegerField(
        help_text="Unix seconds by the hub's clock, a multiple of the bucket's length."
    )
    data = models.BinaryField()

    class Meta:
        verbose_name = "slice of telemetry"
        verbose_name_plural = "slices of telemetry"
        constraints = [models.UniqueConstraint(fields=["node", "start"], name="one_slice_per_node_and_start")]
        indexes = [models.Index(fields=["start"], name="slice_start")]


class TelemetryChunk(models.Model):
    """The values of one subject over a span, `step_s` apart. `subject`: a GPU's UUID, or "" for the node."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="+", db_index=False)
    subject = models.CharField(max_length=96, blank=True)
    step_s = models.PositiveIntegerField()
    start = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "subject", "step_s", "start"], name="one_chunk_per_span"),
        ]
        indexes = [
            models.Index(
                fields=["subject", "step_s", "start"], condition=~models.Q(subject=""), name="chunk_of_gpu"
            ),
            models.Index(fields=["step_s", "start"], name="chunk_age"),
        ]


class StoredSeries(models.Model):
    """The curves of an attempt, stored as long as its run exists. `holder` is the run's id, because this app
    does not depend on runs."""

    holder = models.CharField(max_length=32)
    attempt = models.PositiveIntegerField()
    node_name = models.CharField(max_length=50)
    subject = models.CharField(max_length=96, blank=True)
    step_s = models.PositiveIntegerField()
    start = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["holder", "attempt", "node_name", "subject"], name="one_kept_series"
            ),
        ]
