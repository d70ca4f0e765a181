"""What a node gets that is to run another version: the signed order, and the archive."""

from __future__ import annotations

import platform
from pathlib import Path

from clusters.agent_upgrades.program_signing import signed
from clusters.agent_upgrades.states import UpgradeState
from clusters.allocations.node_program import archive_path
from clusters.models import Node, NodeUpgrade
from trainhub_launch.upgrades.program_order import ProgramOrder

# As in packaging/node/pyproject.toml.
OLDEST_PYTHON = "3.11"


def order_of_node(node: Node) -> ProgramOrder | None:
    """Returns the order that the node is to follow now. Raises KeyUnusable."""
    part = _open_part(node)
    if part is None:
        return None
    rollout = part.rollout
    return signed(
        ProgramOrder(
            order=part.pk,
            node=node.name,
            version=rollout.version,
            sha256=rollout.sha256,
            size=rollout.size,
            machine=platform.machine(),
            python=OLDEST_PYTHON,
            may_go_back=rollout.may_go_back,
        )
    )


def archive_of_node(node: Node, sha256: str) -> Path | None:
    """Returns the archive that the node's order names, None for any other."""
    part = _open_part(node)
    return archive_path(sha256) if part is not None and part.rollout.sha256 == sha256 else None


def _open_part(node: Node) -> NodeUpgrade | None:
    return NodeUpgrade.objects.select_related("rollout").filter(node=node, state=UpgradeState.ORDERED).first()
