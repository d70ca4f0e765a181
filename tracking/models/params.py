from __future__ import annotations

from django.db import models

from jobs.models import Experiment, Run


class Param(models.Model):
    """A param of a run; it never changes. `short` is the indexed start of the value, `number` the value if it
    is numeric."""

    # The constraint and the indexes below begin with these columns, so the keys need no index of their own.
    run = models.ForeignKey(Run, models.CASCADE, related_name="params", db_index=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=250)
    value = models.TextField(blank=True)
    short = models.CharField(max_length=200, blank=True)
    number = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="param_once_per_run")]
        indexes = [
            models.Index(fields=["experiment", "key", "short", "run"], name="param_found"),
            models.Index(fields=["experiment", "key", "number", "run"], name="param_number"),
        ]
