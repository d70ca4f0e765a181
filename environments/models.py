"""A workspace's own environments, their versions, and the files that these install. Only
`environments.resolver` and `environments.made_versions` write the state of a version."""

from __future__ import annotations

from django.db import models

from environments.states import EnvironmentKind, VersionState
from workspaces.models import User, Workspace


class Environment(models.Model):
    """A named environment of a workspace; of none (None): a curated one, which everybody may use.
    `deleted_at`: since when it is in no list and no run can be started with it; it stays because runs name
    it, and its name stays taken."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="environments")
    name = models.CharField(max_length=100)
    deleted_at = models.DateTimeField(null=True)
    last_version = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="environment_name_once"),
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(workspace=None), name="curated_environment_once"
            ),
        ]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def owner(self) -> Workspace:
        """Returns its workspace. Raises ValueError for a curated one, which everybody may use."""
        if self.workspace is None:
            raise ValueError(f"{self.name} is curated, and belongs to no workspace")
        return self.workspace


class EnvironmentVersion(models.Model):
    """A version of an environment; its source never changes. `source`: the text as given, whose form depends
    on the kind. `python`: the minor version that it is resolved for ("3.11"), "" for kinds whose source
    brings its own. `lock`: exactly what nodes install, with hashes; "" until it is locked. `draft`: what a
    node is to do to make it (JSON), "" if no node must. `failure`: why it could not be resolved or made.
    `package_count`, `download_bytes`: the packages of the lock and the bytes of their files, None if not
    known. `outdated`: a sentence why it should no longer be used, "" if it may; `successor`: the environment
    or version ("NAME" or "NAME:NUMBER") to use instead, or "". `attempts`: how often resolving it has begun,
    the last time at `started_at`."""

    environment = models.ForeignKey(Environment, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    kind = models.CharField(
        max_length=16,
        default=EnvironmentKind.PIP,
        choices=[(kind.value, kind.value) for kind in EnvironmentKind],
    )
    source = models.TextField()
    python = models.CharField(max_length=10, blank=True)
    lock = models.TextField(blank=True)
    draft = models.TextField(blank=True)
    state = models.CharField(
        max_length=16,
        default=VersionState.RESOLVING,
        choices=[(state.value, state.value) for state in VersionState],
    )
    failure = models.TextField(blank=True)
    package_count = models.PositiveIntegerField(null=True)
    download_bytes = models.PositiveBigIntegerField(null=True)
    outdated = models.CharField(max_length=300, blank=True)
    successor = models.CharField(max_length=120, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["environment", "number"], name="environment_version_once")
        ]
        ordering = ["-number"]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(state=VersionState.RESOLVING.value),
                name="version_resolving",
            ),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state=VersionState.BUILDING.value),
                name="version_building",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.environment.name} {self.number}"

    @property
    def is_locked(self) -> bool:
        return self.state == VersionState.LOCKED

    @property
    def is_settled(self) -> bool:
        """Returns whether nothing is done for it any more."""
        return self.state in (VersionState.LOCKED, VersionState.FAILED)


class LockedFile(models.Model):
    """A wheel, or a package of conda (`is_conda`), that a version may install. `project`: the normalised name
    of its package. `url`: where the index or channel has it, without a password; "" for a wheel that a node
    has built (`BuiltWheel`). `size_bytes`: 0 if that does not say. `is_preferred`: the one of its package
    that the usual node takes; nodes with a newer glibc may take another wheel. `is_for_build`: a wheel or
    source distribution that only building others of the version's packages needs. `glibc`: the version that
    a package of conda needs ("2.34"), or of the node that has built a wheel; "" if every node has it, or the
    name of the wheel says what it needs."""

    version = models.ForeignKey(EnvironmentVersion, models.CASCADE, related_name="files")
    project = models.CharField(max_length=200)
    filename = models.CharField(max_length=255)
    url = models.TextField()
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField(default=0)
    is_preferred = models.BooleanField(default=False)
    is_for_build = models.BooleanField(default=False)
    is_conda = models.BooleanField(default=False)
    glibc = models.CharField(max_length=20, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "filename"], name="locked_file_once"),
        ]

    def __str__(self) -> str:
        return self.filename


class PackageFile(models.Model):
    """A wheel or package of conda whose bytes the hub has fetched. It belongs to no workspace: what an index
    or channel publishes under a hash is the same for everybody. A row exists only for bytes that were
    fetched, so that no lock opens another stored file by naming its hash."""

    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.BigIntegerField()
    fetched_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256


class BuiltWheel(models.Model):
    """A wheel that a node has built from source for a workspace, which nobody else gets; `workspace` None:
    for the curated environments. `version`: the one that it was built for first. `build_key`: the SHA-256 of
    everything that went into it; versions with the same one use it, too. `source_sha256`: of the source
    distribution. `node`: the name of the node; `glibc`: its version of glibc, "" if it reported none or the
    wheel has nothing compiled; `build`: the id of its build there."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="built_wheels")
    version = models.ForeignKey(EnvironmentVersion, models.SET_NULL, null=True, related_name="built_wheels")
    project = models.CharField(max_length=200)
    project_version = models.CharField(max_length=100)
    filename = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()
    build_key = models.CharField(max_length=64)
    source_sha256 = models.CharField(max_length=64)
    node = models.CharField(max_length=100, blank=True)
    glibc = models.CharField(max_length=20, blank=True)
    build = models.CharField(max_length=32, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "build_key"], name="built_wheel_key")]

    def __str__(self) -> str:
        return self.filename


class ImageBlob(models.Model):
    """A part of the image of a version that the hub has stored: the manifest, the configuration or a layer.
    Nodes get it for this version only: that its bytes are stored for another one is no permission."""

    version = models.ForeignKey(EnvironmentVersion, models.CASCADE, related_name="image_blobs")
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "sha256"], name="image_blob_once")]
