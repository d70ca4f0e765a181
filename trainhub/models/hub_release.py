"""Which TrainHub has made the tables of this database."""

from __future__ import annotations

from django.db import models


class HubRelease(models.Model):
    """The one row. `version`: of the TrainHub that migrated the database last. `oldest_version`: the oldest
    one whose code works with these tables, so that a hub may go back to it."""

    version = models.CharField(max_length=32)
    oldest_version = models.CharField(max_length=32)
    migrated_at = models.DateTimeField(auto_now=True)
