"""The only place where a topic's name is spelled (valid as a channel-layer group)."""

from __future__ import annotations


def run_topic(run_id: str) -> str:
    return f"run.{run_id}"


def runs_topic(workspace_id: int) -> str:
    return f"runs.{workspace_id}"


def node_topic(node_id: int) -> str:
    return f"node.{node_id}"


def telemetry_topic(node_id: int) -> str:
    """A node's numbers, second by second, while somebody looks."""
    return f"telemetry.{node_id}"


def access_topic(user_id: int) -> str:
    """What a person may see has changed: every socket of theirs asks again."""
    return f"access.{user_id}"
