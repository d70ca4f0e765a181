"""Which logs of ended attempts lie among the stored files, and so in the object store.

Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import models
from django.utils import timezone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogArchive(models.Model):
    """How far the logs of an attempt have moved to the stored files; every attempt gets such a row while
    BLOB_STORE is set. `stored_at`: when each of them had its ArchivedLog; `done_at`: when no file of them
    was left below DATA_DIR/runs."""

    attempt = models.OneToOneField(
        "jobs.Attempt", models.CASCADE, primary_key=True, related_name="log_archive"
    )
    stored_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["attempt"], condition=models.Q(done_at=None), name="log_archive_open")
        ]


class ArchivedLog(models.Model):
    """A log of an ended attempt, all of it; `sha256` names the blob with its bytes. `written_at`: when its
    last byte was stored below DATA_DIR/runs."""

    attempt = models.ForeignKey("jobs.Attempt", models.CASCADE, related_name="archived_logs")
    name = models.CharField(max_length=500)
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()
    written_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="archived_log_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def written_us(self) -> int:
        """`written_at` in microseconds since 1970, exactly."""
        return (self.written_at - EPOCH) // timedelta(microseconds=1)
