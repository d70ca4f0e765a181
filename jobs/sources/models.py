"""Snapshots of sources, and what the hub has fetched from git repositories. Part of `jobs.models`."""

from __future__ import annotations

from django.db import models

from workspaces.models import User, Workspace


class FetchedCommit(models.Model):
    """That a folder of a commit of a repository is a snapshot of the workspace. `url`, `ref` and `path`: as
    they stood in the spec; `branch`: the one that they named, "" for a tag or a commit. `warnings`: what of
    the commit is not in the snapshot."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="fetched_commits")
    snapshot = models.ForeignKey("jobs.Snapshot", models.CASCADE, related_name="commits")
    url = models.CharField(max_length=1000)
    ref = models.CharField(max_length=200, blank=True)
    path = models.CharField(max_length=1000, blank=True)
    commit = models.CharField(max_length=64)
    branch = models.CharField(max_length=200, blank=True)
    warnings = models.JSONField(default=list)
    fetched_by = models.ForeignKey(User, models.SET_NULL, null=True)
    fetched_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "jobs"
        indexes = [models.Index(fields=["workspace", "commit"], name="fetched_commit_of_workspace")]

    def __str__(self) -> str:
        return f"{self.url}@{self.commit}"


class Snapshot(models.Model):
    """The frozen copy of a source folder. `sha256` names its blob; `manifest`: [{path, size}].

    `warnings`: sentences about what was left out and what looks like a secret. `scans`: what its scripts
    import, by script (`jobs.environment_findings.source_scans`)."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="snapshots")
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    manifest = models.JSONField()
    warnings = models.JSONField(default=list)
    scans = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "sha256"], name="snapshot_once_per_workspace")
        ]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(entry["path"] for entry in self.manifest)
