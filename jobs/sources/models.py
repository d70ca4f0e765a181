"""What the hub has fetched from git repositories."""

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
