"""The builds that people have ordered. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

import re
import uuid

from django.db import models

from clusters.models import Node
from environments.models import EnvironmentVersion
from jobs.builds.states import BuildPurpose, BuildState
from workspaces.models import User, Workspace

# A build travels to its node, and its log comes back, like the only attempt of a run.
BUILD_ATTEMPT = 1
# The digit of an id that holds the version of a UUID is 4 in those of runs, and 8 ("custom") in those of
# builds.
VERSION_AT, BUILD_VERSION = 12, "8"
BUILD_ID = re.compile(r"[0-9a-f]{12}8[0-9a-f]{19}\Z")


def new_build_id() -> str:
    """Returns a new id of 32 hex digits, which no run can have."""
    random = uuid.uuid4().hex
    return f"{random[:VERSION_AT]}{BUILD_VERSION}{random[VERSION_AT + 1 :]}"


def is_build_id(identifier: str) -> bool:
    """Returns whether this is the id of a build rather than of a run."""
    return BUILD_ID.match(identifier) is not None


class EnvironmentBuild(models.Model):
    """An order to a node to build an environment. Only `jobs.builds.build_lifecycle` writes its state.

    `workspace`: that of who ordered it; None: the hub did, for a curated environment. `own_version`: the
    version of a workspace's own environment, or of a curated one that a node makes; None for a curated one
    that it installs. `purpose`: a BuildPurpose; `order_number`: how often making the version has been
    ordered, because nodes were lost with it; `is_lost`: it failed for no reason of its own, so that another
    node may succeed. `reason`: a sentence why it failed or who canceled it. `offered_at`: since when its
    node may claim it; a node is offered one at a time. `phase`: how far the node is (Phase). `ended_at`: when
    its outcome was known here; `settled_at`: since when its node runs nothing of it any more and sends
    nothing of its log."""

    id = models.CharField(primary_key=True, max_length=32, default=new_build_id, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="environment_builds")
    node = models.ForeignKey(Node, models.CASCADE, related_name="environment_builds")
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=50)
    own_version = models.ForeignKey(
        EnvironmentVersion, models.CASCADE, null=True, related_name="environment_builds"
    )
    state = models.CharField(
        max_length=16,
        default=BuildState.QUEUED,
        choices=[(state.value, state.value) for state in BuildState],
    )
    purpose = models.CharField(
        max_length=16,
        default=BuildPurpose.INSTALL,
        choices=[(purpose.value, purpose.value) for purpose in BuildPurpose],
    )
    order_number = models.PositiveSmallIntegerField(default=1)
    is_lost = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    offered_at = models.DateTimeField(null=True)
    nonce = models.CharField(max_length=32, blank=True)
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    phase = models.CharField(max_length=16, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "node", "name", "version"],
                condition=models.Q(ended_at=None),
                name="build_once_at_a_time",
            ),
            models.UniqueConstraint(
                fields=["node"],
                condition=models.Q(settled_at=None, offered_at__isnull=False),
                name="one_build_per_node",
            ),
        ]
        ordering = ["-created_at"]
        indexes = [
            # Read with each report of a busy node, and in every check for lost nodes.
            models.Index(fields=["node"], condition=models.Q(settled_at=None), name="build_unsettled"),
            models.Index(fields=["workspace", "name", "version", "-created_at"], name="build_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version} on {self.node.name}"

    @classmethod
    def visible_to(cls, workspace: Workspace) -> models.QuerySet[EnvironmentBuild]:
        """Returns the builds that the workspace ordered, and those that the hub did for everybody."""
        return cls.objects.filter(models.Q(workspace=workspace) | models.Q(workspace=None))

    @property
    def is_finished(self) -> bool:
        return self.ended_at is not None

    @property
    def duration_s(self) -> float | None:
        """Returns how long the node worked on it; None while it does, and if it never did."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.started_at).total_seconds())
