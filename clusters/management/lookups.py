"""What the commands for operators look up by the names that are given to them."""

from __future__ import annotations

from clusters.models import Cluster
from trainhub_launch.errors import SpecError
from workspaces.models import User, Workspace

# The exit status of a command that refuses its input.
EXIT_REFUSED = 2


def cluster_named(name: str) -> Cluster:
    """Returns the cluster. Raises SpecError."""
    cluster = Cluster.objects.filter(name=name, deleted_at=None).first()
    if cluster is None:
        raise SpecError("name", f"there is no cluster {name!r}; see manage.py cluster list")
    return cluster


def workspace_named(slug: str) -> Workspace:
    """Returns the workspace with that short name. Raises SpecError."""
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        raise SpecError("slug", f"there is no workspace {slug!r}; see manage.py workspace list")
    return workspace


def operator_named(name: str) -> User:
    """Returns the operator in whose name a command acts: the first one for "". Raises SpecError."""
    operators = User.objects.filter(is_operator=True, is_active=True).order_by("pk")
    operator = operators.filter(username=name).first() if name else operators.first()
    if operator is None:
        raise SpecError(
            "user",
            f"there is no operator {name!r}" if name else "there is no operator yet; run manage.py up once",
        )
    return operator
