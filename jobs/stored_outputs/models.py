"""Outputs that lie in a datastore instead of on the hub. Part of `jobs.models`, which every other module
imports."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from datastores.models import Datastore


class OutputFolder(models.Model):
    """Where the outputs of an attempt go. `path`: the whole path in the store of `datastore`, or on nodes;
    `place`: where that is, in one line for people, also once the datastore is gone."""

    run = models.ForeignKey("jobs.Run", models.CASCADE, related_name="output_folders")
    attempt = models.PositiveIntegerField()
    datastore = models.ForeignKey(Datastore, models.SET_NULL, null=True, related_name="output_folders")
    path = models.CharField(max_length=2048)
    place = models.CharField(max_length=4096)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "attempt"], name="output_folder_once")]

    def __str__(self) -> str:
        return self.place


class StoredOutput(models.Model):
    """An output file in a datastore, as the node that wrote it has said: the hub has not seen its bytes.
    `path`: as in Artifact; `key`: where it lies below its folder. `digest`: its SHA-256, which gives nobody
    access to a stored file of the hub. So it is no column `sha256`, by which such files are found."""

    folder = models.ForeignKey(OutputFolder, models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    key = models.CharField(max_length=1100)
    size_bytes = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    node_rank = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["folder", "path"], name="stored_output_once")]
        ordering = ["path"]

    def __str__(self) -> str:
        return self.path

    @property
    def sha256(self) -> str:
        return self.digest

    @property
    def full_path(self) -> str:
        """The path in the store, or on nodes."""
        return f"{self.folder.path}/{self.key}"

    @property
    def place(self) -> str:
        """Where it lies, in one line."""
        return f"{self.folder.place}/{self.key}"
