"""The named places from which runs of a workspace read their data."""

from __future__ import annotations

from django.db import models

from datastores.states import DatastoreKind
from workspaces.models import User, Workspace


class Datastore(models.Model):
    """A named place of a workspace. `path`: of the kind folder, its absolute path on the nodes."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="datastores")
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=16,
        default=DatastoreKind.FOLDER,
        choices=[(kind.value, kind.value) for kind in DatastoreKind],
    )
    path = models.CharField(max_length=1024)
    description = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="datastore_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
