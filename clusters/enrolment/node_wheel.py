"""The package that nodes install, built from the hub's own sources, so that both have the same version."""

from __future__ import annotations

from pathlib import Path

from workspaces.own_wheels.own_wheel import OwnWheel

NODE_WHEEL = OwnWheel(
    package="node",
    label="The package for nodes",
    sources=("trainhub_launch", "trainhub_node"),
    pattern="trainhub_node-*-py3-none-any.whl",
    folder_setting="NODE_WHEELS",
)


def node_wheel() -> Path | None:
    """Returns the wheel, which is built on first use, or None if it cannot be built (the log says why)."""
    return NODE_WHEEL.path()
