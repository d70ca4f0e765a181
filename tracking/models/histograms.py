"""Histograms over steps, as TensorBoard's event files hold them."""

from __future__ import annotations

from django.db import models

from jobs.models import Run


class Histogram(models.Model):
    """One histogram of a run at one step. `counts`: how many values lie in each of its equally wide buckets
    from `low` to `high`, which need not be whole numbers."""

    # The constraint below serves as the index.
    run = models.ForeignKey(Run, models.CASCADE, related_name="histograms", db_index=False)
    attempt = models.PositiveIntegerField()
    key = models.CharField(max_length=250)
    step = models.BigIntegerField()
    low = models.FloatField()
    high = models.FloatField()
    counts = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt", "key", "step"], name="histogram_once_per_step")
        ]
