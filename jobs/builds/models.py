"""The builds that people have ordered. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from clusters.models import Node
from clusters.task_messages import send_task_soon
from environments.models import EnvironmentVersion
from jobs.builds.states import BuildPurpose, BuildState
from jobs.node_orders.work_order import ORDER_ATTEMPT, WorkOrder, id_pattern, new_order_id
from live.publish import publish_on_commit
from live.topics import run_topic
from workspaces.models import Workspace
from workspaces.task_names import TaskName

BUILD_ATTEMPT = ORDER_ATTEMPT
# "Custom" among the versions of UUIDs.
BUILD_DIGIT = "8"
BUILD_ID = id_pattern(BUILD_DIGIT)


def new_build_id() -> str:
    return new_order_id(BUILD_DIGIT)


def is_build_id(identifier: str) -> bool:
    """Returns whether this is the id of a build rather than of a run."""
    return BUILD_ID.match(identifier) is not None


class EnvironmentBuild(WorkOrder):
    """An order to a node to build an environment. A node is offered one at a time.

    `workspace`: that of who ordered it; None: the hub did, for a curated environment. `own_version`: the
    version of a workspace's own environment, or of a curated one that a node makes; None for a curated one
    that it installs. `purpose`: a BuildPurpose; `order_number`: how often making the version has been
    ordered, because nodes were lost with it."""

    WORKING: ClassVar[str] = BuildState.BUILDING

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

    def send_offer(self) -> None:
        send_task_soon(TaskName.OFFER_BUILD, self.node_id)

    def note_change(self) -> None:
        is_making = self.purpose == BuildPurpose.MAKE
        if self.is_finished and is_making and self.own_version_id is not None:
            send_task_soon(TaskName.ADVANCE_VERSION, self.own_version_id)
        publish_on_commit(
            run_topic(self.pk), {"type": "build.changed", "build": self.pk, "state": str(self.state)}
        )
