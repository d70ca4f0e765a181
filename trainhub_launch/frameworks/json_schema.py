"""Parts of the JSON schemas of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}
COUNT_OR_NULL: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 1}


def configuration_schema(name: str, properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of a `distribution` of the framework `name`; every property but `type` may be left out."""
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": [name]}, **properties},
        "required": ["type"],
    }
