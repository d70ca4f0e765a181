"""Saved views of the run table, stars, and usage entries."""

from __future__ import annotations

from django.db import models

from jobs.models import Run
from workspaces.models import User, Workspace


class SavedView(models.Model):
    """A named view of the run table. `query` is the URL's query string; a shared view is visible to the
    workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="saved_views")
    user = models.ForeignKey(User, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=100)
    query = models.TextField(blank=True)
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user", "name"], name="view_name_once")]
        ordering = ["name"]


class Star(models.Model):
    """A person's star on a run."""

    user = models.ForeignKey(User, models.CASCADE, related_name="stars")
    run = models.ForeignKey(Run, models.CASCADE, related_name="stars")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "run"], name="star_once")]


class UsageEntry(models.Model):
    """Usage of one attempt in one month (UTC); outlives its run. `energy_j` is null without measurements."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="usage")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="usage")
    run_number = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    month = models.DateField(help_text="Its first day.")
    # Copies of the names, because a row outlives its run, experiment and user.
    experiment_name = models.CharField(max_length=500)
    user_name = models.CharField(max_length=150, blank=True)
    cluster_name = models.CharField(max_length=100, blank=True)
    gpus = models.PositiveIntegerField(default=0)
    gpu_seconds = models.FloatField(default=0.0)
    node_seconds = models.FloatField(default=0.0)
    energy_j = models.FloatField(null=True)
    is_final = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "run_number", "attempt", "month"], name="usage_once_per_month"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "month"], name="usage_of_month")]
