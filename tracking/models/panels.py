"""How people arrange the charts of an experiment's metrics."""

from __future__ import annotations

from django.db import models

from jobs.models import Experiment
from workspaces.models import User


class PanelLayout(models.Model):
    """The panels that people arranged for an experiment, in their order; the whole workspace sees them.

    `panels` is a list of MetricPanel as JSON (`tracking.panels.metric_panel`). `revision` grows by one with
    each change, so that nobody overwrites a change that they have not seen."""

    experiment = models.OneToOneField(
        Experiment, models.CASCADE, related_name="panel_layout", primary_key=True
    )
    panels = models.JSONField(default=list)
    revision = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
