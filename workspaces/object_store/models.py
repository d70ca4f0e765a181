"""What lies in the store. The rows are the truth: the store itself is never listed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class ObjectState(models.TextChoices):
    """WAITING: the bytes are on the disk of a server, which has yet to upload them. STORED: the object is
    complete. DELETED: no file of the hub any more; the object goes when the time for that has passed."""

    WAITING = "waiting"
    STORED = "stored"
    DELETED = "deleted"


LIVE = (ObjectState.WAITING, ObjectState.STORED)


class StoredObject(models.Model):
    """A stored file that lies in the store, or is on its way there.

    `place`: the bucket and prefix, as BLOB_STORE names them; `key`: the name below it, which no other row has
    or will have, so that who deletes an old object cannot hit a new one of the same content. `server`: whose
    disk has the bytes while they wait, `waits_since` when. `kept_at`: when somebody has kept the file last.
    `try_at`: when the upload is tried next, after `tries` that failed, the last one with `error`."""

    place = models.CharField(max_length=400)
    sha256 = models.CharField(max_length=64)
    key = models.CharField(max_length=100)
    size_bytes = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=ObjectState, default=ObjectState.WAITING)
    server = models.CharField(max_length=100)
    waits_since = models.DateTimeField(default=timezone.now)
    kept_at = models.DateTimeField()
    try_at = models.DateTimeField(default=timezone.now)
    tries = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=400, blank=True, default="")
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["place", "key"], name="object_key"),
            models.UniqueConstraint(
                fields=["place", "sha256"], condition=models.Q(state__in=LIVE), name="live_object"
            ),
        ]
        indexes = [
            models.Index(fields=["state", "kept_at"], name="object_kept"),
            models.Index(fields=["try_at"], condition=models.Q(state="waiting"), name="object_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.place}/{self.key}"
