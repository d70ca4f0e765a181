"""The setting that names the GPUs of this node."""

from __future__ import annotations

from collections.abc import Mapping


def chosen_gpus(env: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the indexes or UUIDs of the GPUs that the agent may use, None without the variable."""
    value = env.get("TRAINHUB_NODE_GPUS")
    return None if value is None else frozenset(filter(None, (part.strip() for part in value.split(","))))
