"""The files that nodes have uploaded for versions that they make. Part of `jobs.models`."""

from __future__ import annotations

from django.db import models

from jobs.builds.models import EnvironmentBuild


class BuildFile(models.Model):
    """A stored file that the node of a build has uploaded. It counts for nothing until the result of the
    build is accepted, which records the files that the version consists of; then, and when the build ends
    without, these rows are deleted."""

    build = models.ForeignKey(EnvironmentBuild, models.CASCADE, related_name="files")
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["build", "sha256"], name="build_file_once")]

    def __str__(self) -> str:
        return self.sha256
