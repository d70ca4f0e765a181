from __future__ import annotations

from django.db import models


class ServerProcess(models.Model):
    """A web server or worker that uses this database. All times are the database's: clocks of machines
    differ.

    `id`: new with each process. `name`: SERVER_NAME, or the name of its machine. `machine`: the boot id of
    its kernel. `address`: HOST:PORT at which other servers reach a web server, empty for none. `is_alone`: it
    was not started as one of several. `clock_offset_s`: by how much its clock is ahead of the database's.
    `settings`: the codes of what all servers must be given alike (`shared_settings`). `marks`: the settings
    whose places have its mark (`meeting_places`). `strangers`: by setting, the ids of living servers whose
    marks it does not see there. None before it has looked."""

    id = models.CharField(primary_key=True, max_length=32)
    name = models.CharField(max_length=100)
    machine = models.CharField(max_length=64)
    role = models.CharField(max_length=16)
    address = models.CharField(max_length=200, blank=True)
    is_alone = models.BooleanField(default=False)
    version = models.CharField(max_length=50)
    clock_offset_s = models.FloatField(default=0.0)
    started_at = models.DateTimeField()
    renewed_at = models.DateTimeField()
    settings = models.JSONField(null=True)
    marks = models.JSONField(null=True)
    strangers = models.JSONField(null=True)

    class Meta:
        ordering = ["role", "name", "started_at"]


class RoundLease(models.Model):
    """Which worker runs the rounds of this name until when, by the database's clock."""

    name = models.CharField(primary_key=True, max_length=64)
    holder = models.CharField(max_length=250)
    until = models.DateTimeField()


class DataFolder(models.Model):
    """The one data folder that belongs to this database: the text of its file `installation-id`, and where it
    was when a hub started on it last."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    fingerprint = models.CharField(max_length=64)
    key_check = models.CharField(max_length=64)
    path = models.CharField(max_length=1000)
    host = models.CharField(max_length=255)
