"""The table of the hub's processes and their measurements."""

from __future__ import annotations

from django.db import models


class HubProcess(models.Model):
    """A process of the hub, as it has last described itself. `kind`: web or worker. `measured`: its
    measurements since it started (workspaces.hub_metrics.snapshots), `earlier`: the same, `earlier_s` seconds
    before."""

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=16)
    version = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    measured_at = models.DateTimeField(db_index=True)
    measured = models.JSONField()
    earlier = models.JSONField()
    earlier_s = models.FloatField()
