"""The named places from which runs of a workspace read their data."""

from __future__ import annotations

import posixpath

from django.db import models

from datastores.states import KIND_WORDS, MOUNTED_KINDS, DatastoreKind, ListingState
from datastores.swarms.models import BlockHashes as BlockHashes  # noqa: PLC0414  # exported
from datastores.swarms.models import PeerServer as PeerServer  # noqa: PLC0414  # exported
from datastores.swarms.models import Swarm as Swarm  # noqa: PLC0414  # exported
from datastores.swarms.models import SwarmMember as SwarmMember  # noqa: PLC0414  # exported
from datastores.testing.models import DatastoreTest as DatastoreTest  # noqa: PLC0414  # exported
from trainhub_launch.data.shares import InputMount, NfsShare, share_of
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
    def is_mounted(self) -> bool:
        """Whether runs read its files where they lie, and download nothing."""
        return self.kind in MOUNTED_KINDS

    @property
    def is_listed_by_node(self) -> bool:
        """Whether the hub itself cannot read it, so that a node lists its files."""
        return self.is_mounted or self.sign_in == SignIn.NODE

    @property
    def store(self) -> Store:
        """From what nodes download it; not of kinds that are mounted."""
        return Store(self.kind, self.sign_in, self.settings)

    @property
    def share(self) -> NfsShare:
        """What nodes mount; only of the kind nfs."""
        return share_of(self.settings)

    @property
    def place(self) -> str:
        """Where it lies, in one line."""
        return self.place_of(self.path)

    def place_of(self, path: str) -> str:
        """Returns where the whole path `path` of the store lies, in one line."""
        settings, below = self.settings, f"/{path}" if path else ""
        if self.kind == DatastoreKind.S3:
            return f"s3://{settings['bucket']}{below}"
        if self.kind == DatastoreKind.AZURE_BLOB:
            return f"{settings['account']}/{settings['container']}{below}"
        if self.kind == DatastoreKind.NFS:
            return str(InputMount(self.share, path))
        if self.kind == DatastoreKind.HUB:
            return "on this hub"
        return f"{settings['url'].rstrip('/')}{below}" if self.kind == DatastoreKind.HTTP else path

    def path_of(self, path: str) -> str:
        """Returns the whole path of what is at `path` below the datastore, without a slash at its end."""
        return posixpath.join(self.path, path).rstrip("/")

    @property
    def words(self) -> str:
        return KIND_WORDS[DatastoreKind(self.kind)]


class Dataset(models.Model):
    """A name for the files below `path` of a datastore, "" for all of it. Which files these were at a time, a
    version says. `tags`: {key: value}."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=100)
    datastore = models.ForeignKey(Datastore, models.RESTRICT, related_name="datasets")
    path = models.CharField(max_length=1024, blank=True)
    description = models.CharField(max_length=500, blank=True)
    tags = models.JSONField(default=dict, db_default={})
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="dataset_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def tag_list(self) -> list[tuple[str, str]]:
        """Its tags as pages show them: a template would take `tags.items` for the tag of that name."""
        return sorted(self.tags.items())


class DatasetVersion(models.Model):
    """Which files a dataset had when they were listed. `files` and `bytes`: how many there are and how
    large they are together; while they are listed or uploaded, those up to now. `is_file`: the dataset is
    one file, and no folder. `failure`: a sentence why there is no list. `begun_at`: since when a worker
    lists them, or somebody uploads them, `seen_at`: when it was heard of last; `attempts`: how often a
    worker began. `differences`: from the ready version before it, as
    datastores.datasets.file_list.Differences.to_json writes them; empty if there is none."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(
        max_length=16,
        default=ListingState.LISTING,
        choices=[(state.value, state.value) for state in ListingState],
    )
    failure = models.TextField(blank=True)
    files = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    is_file = models.BooleanField(default=False)
    differences = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    begun_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_once")]
        ordering = ["-number"]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(state=ListingState.LISTING.value),
                name="dataset_version_listing",
            )
        ]

    def __str__(self) -> str:
        return f"{self.dataset.name} {self.number}"

    @property
    def full_path(self) -> str:
        """The path in the store, below which the paths of the files are."""
        return self.dataset.datastore.path_of(self.dataset.path)

    @property
    def is_ready(self) -> bool:
        return self.state == ListingState.READY


class UploadedFile(models.Model):
    """A stored file of a version that is being uploaded. `modified_at`: in seconds since 1970, as its
    uploader says; `confirmed_at`: when the uploader said last that the version has it."""

    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="uploaded_files")
    path = models.CharField(max_length=1024)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    modified_at = models.FloatField()
    confirmed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="uploaded_file_once")]

    def __str__(self) -> str:
        return self.path


class DatasetFile(models.Model):
    """A content that any version of an uploaded dataset has. It stays as long as the dataset."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="contents")
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "sha256"], name="dataset_file_once")]

    def __str__(self) -> str:
        return self.sha256


class Manifest(models.Model):
    """The list of a version's files (see trainhub_launch.data.manifests). `sha256` names the stored file;
    `starts`: where its members begin, as integers of 8 bytes."""

    version = models.OneToOneField(DatasetVersion, models.CASCADE, related_name="manifest")
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()
    starts = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256
