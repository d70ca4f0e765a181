"""What a page shows of an environment's nodes: its state on each, and where a build can be ordered."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.builds.build_requests import build_refusal
from jobs.builds.build_targets import BuildTarget
from jobs.builds.node_environments import NodeEnvironment


def nodes_context(target: BuildTarget, items: Sequence[NodeEnvironment]) -> dict[str, object]:
    """Returns what the part about nodes shows of this version. `items`: the version on each node."""
    return {
        "build_target": target,
        "on_nodes": [item for item in items if item.state],
        "ready_count": sum(item.is_ready for item in items),
        "node_count": len(items),
        "is_building": any(item.build is not None and not item.build.is_finished for item in items),
        "choices": [(item.node.name, build_refusal(item.node, target), item.is_ready) for item in items],
    }
