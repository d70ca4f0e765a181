"""Which files people have sent. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from django.db import models

from workspaces.models import User, Workspace


class UploadedBlob(models.Model):
    """A file (SHA-256 `digest`) that a person has sent whole to a workspace, so that they may name it there:
    a hash alone gives access to nothing. `uploaded_at`: when that was, last.

    The row does not protect the file from garbage collection; both are deleted when nothing has named the
    file for some days."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="uploaded_blobs")
    user = models.ForeignKey(User, models.CASCADE, related_name="uploaded_blobs")
    digest = models.CharField(max_length=64)
    uploaded_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "digest"], name="blob_uploaded_once_per_person"
            )
        ]
