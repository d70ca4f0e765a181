"""Registered models: a name, numbered versions, movable aliases."""

from __future__ import annotations

from django.db import models

from jobs.models import Run
from workspaces.models import User, Workspace


class RegisteredModel(models.Model):
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="registered_models")
    name = models.CharField(max_length=128)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="model_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """`source_path` is the file or folder below the run's outputs that was registered."""

    model = models.ForeignKey(RegisteredModel, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="model_versions")
    source_path = models.CharField(max_length=1000)
    description = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="version_number_once")]
        ordering = ["-number"]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.all())


class ModelFile(models.Model):
    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="model_file_once")]
        ordering = ["path"]


class ModelAlias(models.Model):
    """A movable name such as `production`, on one version of a model at a time."""

    model = models.ForeignKey(RegisteredModel, models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="aliases")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_once_per_model")]
