"""The names of all topics. They are valid names of channel-layer groups: at most 99 ASCII letters, digits,
dots, dashes and underscores."""

from __future__ import annotations


def run_topic(run_id: str) -> str:
    return f"run.{run_id}"


def runs_topic(workspace_id: int) -> str:
    return f"runs.{workspace_id}"


def node_topic(node_id: int) -> str:
    return f"node.{node_id}"


def telemetry_topic(node_id: int) -> str:
    """Returns the topic of a node's samples, which are sent every second while somebody watches."""
    return f"telemetry.{node_id}"


def access_topic(user_id: int) -> str:
    """Returns the topic that notifies all sockets of a person of changes of the person's access."""
    return f"access.{user_id}"
