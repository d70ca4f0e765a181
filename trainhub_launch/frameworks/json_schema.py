"""Parts of the JSON schemas of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COUNT: Mapping[str, object] = {"type": "integer", "minimum": 1}
COUNT_OR_NULL: Mapping[str, object] = {"type": ["integer", "null"], "minimum": 1}


def configuration_schema(name: str, properties: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Returns the JSON schema of a `distribution` of the framework `name`. All properties but `type` are
    optional."""
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": [name]}, **properties},
        "required": ["type"],
    }
