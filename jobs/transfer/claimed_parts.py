"""The part of an attempt for which a node asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.models import Node
from jobs.models import AttemptNode
from workspaces.http.problems import Problem


def claimed_part(node: Node, params: Mapping[str, Any]) -> AttemptNode:
    """Returns the node's part of the attempt that the parameters `run` and `attempt` of an address name.
    Raises Problem 409 if it has none, or no longer."""
    part = (
        AttemptNode.objects.select_related("attempt__run", "node")
        .filter(node=node, attempt__run_id=params["run"], attempt__number=params["attempt"], settled_at=None)
        .exclude(claimed_at=None)
        .first()
    )
    if part is None:
        raise Problem(409, "Refused", "This node has no part of this attempt.")
    return part
