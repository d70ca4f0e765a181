"""The named places from which runs of a workspace read their data."""

from __future__ import annotations

from django.db import models

from datastores.states import KIND_WORDS, DatastoreKind
from trainhub_launch.data.stores import SignIn, Store
from workspaces.models import User, Workspace


class Datastore(models.Model):
    """A named place of a workspace. `path`, `sign_in`, `secret` and `settings`: see
    datastores.places.Place."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="datastores")
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=16,
        default=DatastoreKind.FOLDER,
        choices=[(kind.value, kind.value) for kind in DatastoreKind],
    )
    path = models.CharField(max_length=1024, blank=True)
    sign_in = models.CharField(max_length=8, default=SignIn.NONE, db_default=SignIn.NONE)
    secret = models.CharField(max_length=64, blank=True, db_default="")
    settings = models.JSONField(default=dict, db_default={})
    description = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="datastore_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_folder(self) -> bool:
        return self.kind == DatastoreKind.FOLDER

    @property
    def store(self) -> Store:
        """From what nodes download it; only of other kinds than folder."""
        return Store(self.kind, self.sign_in, self.settings)

    @property
    def place(self) -> str:
        """Where it lies, in one line."""
        settings, below = self.settings, f"/{self.path}" if self.path else ""
        if self.kind == DatastoreKind.S3:
            return f"s3://{settings['bucket']}{below}"
        if self.kind == DatastoreKind.AZURE_BLOB:
            return f"{settings['account']}/{settings['container']}{below}"
        return f"{settings['url'].rstrip('/')}{below}" if self.kind == DatastoreKind.HTTP else self.path

    @property
    def words(self) -> str:
        return KIND_WORDS[DatastoreKind(self.kind)]
