"""Registered models: a name, numbered versions, movable aliases."""

from __future__ import annotations

from django.db import models

from datastores.models import Datastore
from jobs.models import Run
from tracking.models import LoggedModel
from workspaces.models import User, Workspace


class RegisteredModel(models.Model):
    """A named model of a workspace. `tags`: {key: value}. `protected`: aliases that only owners move."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="registered_models")
    name = models.CharField(max_length=256)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict)
    protected = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    # Only grows: the numbers of deleted versions are never reused.
    last_version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="model_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """A numbered version of a model. `source_path`: the registered file or folder below the run's outputs.
    `source`: the address that a client gave. `kind`: the origin of the files, which is run, logged_model,
    upload, export (from the version `parent`) or version (a copy).

    `certificate`: the signed manifest, byte for byte. `signature`: its Ed25519 signature in hex. `scan`: the
    results of the scan, {path: {"verdict", "findings", "note"}}, by version `scan_rules` of the scanner's
    rules (`registry.scanning.verdict_names.RULES`).
    """

    model = models.ForeignKey(RegisteredModel, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="model_versions")
    source_path = models.CharField(max_length=1000)
    source = models.CharField(max_length=2000, blank=True)
    kind = models.CharField(max_length=16, default="run")
    logged_model = models.ForeignKey(LoggedModel, models.SET_NULL, null=True, related_name="versions")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="derived")
    tags = models.JSONField(default=dict)
    stage = models.CharField(max_length=16, default="None")
    # Text and not JSON: the signature is over these very bytes, and PostgreSQL rewrites stored JSON.
    certificate = models.TextField(blank=True)
    signature = models.CharField(max_length=128, blank=True)
    scan = models.JSONField(null=True)
    scan_rules = models.PositiveSmallIntegerField(default=0)
    updated_at = models.DateTimeField(auto_now=True)
    description = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="version_number_once")]
        ordering = ["-number"]

    @staticmethod
    def has_files() -> models.Q:
        """Returns the condition that a version has files, on the hub or in a datastore."""
        of_version = {"version": models.OuterRef("pk")}
        return models.Q(models.Exists(ModelFile.objects.filter(**of_version))) | models.Q(
            models.Exists(ReferencedFile.objects.filter(**of_version))
        )

    @property
    def all_files(self) -> list[ModelFile | ReferencedFile]:
        """Its files on the hub and in datastores, sorted by path."""
        files: list[ModelFile | ReferencedFile] = [*self.files.all(), *self.referenced_files.all()]
        return sorted(files, key=lambda file: file.path)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.all_files)


class ModelFile(models.Model):
    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    # Indexed, as blob_gc looks up rows by hash before it deletes a blob.
    sha256 = models.CharField(max_length=64, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="model_file_once")]
        ordering = ["path"]


class ReferencedFile(models.Model):
    """A file of a version that lies in a datastore, not on the hub: at `store_path` of its store. `place`:
    where that is, in one line, also once the datastore is deleted. `size_bytes` and `digest`, its
    SHA-256: as the node said that wrote it. That gives nobody access to a stored file of the hub, so it is no
    column `sha256`."""

    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="referenced_files")
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    datastore = models.ForeignKey(Datastore, models.SET_NULL, null=True, related_name="referenced_files")
    store_path = models.CharField(max_length=3200)
    place = models.CharField(max_length=5200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="referenced_file_once")]
        ordering = ["path"]

    def __str__(self) -> str:
        return self.path

    @property
    def sha256(self) -> str:
        return self.digest


class ModelAlias(models.Model):
    """A movable name such as `production`, on one version of a model at a time."""

    model = models.ForeignKey(RegisteredModel, models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="aliases")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_once_per_model")]


class Export(models.Model):
    """The conversion of `version` into another format by the run `run`; `result` is the version that it made.

    `state`: waiting, done or refused. `report`: what the comparison found (differences, tolerances, shapes).
    `message`: why the export was refused.
    """

    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="exports")
    format = models.CharField(max_length=16, default="onnx")
    # Null once the run was deleted; an export that is still waiting is then refused.
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="exports")
    result = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="made_by")
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=16, default="waiting")
    message = models.TextField(blank=True)
    report = models.JSONField(null=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
