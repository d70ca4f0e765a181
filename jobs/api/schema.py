"""RunSpec as the OpenAPI schema shows it. What is accepted is decided by trainhub_launch.spec_reader alone;
a test compares."""

from __future__ import annotations

from typing import Any

from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.frameworks.json_schema import COUNT_OR_NULL

_DISTRIBUTION: dict[str, Any] = {
    "description": "Nothing: one process.",
    "oneOf": [
        {"type": "null"},
        *(item.configuration.json_schema for item in FRAMEWORKS.values() if item.configuration is not None),
    ],
}
_SOURCE = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["snapshot"]}, "id": {"type": "string"}},
            "required": ["type", "id"],
        },
        {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["example"]}, "name": {"type": "string"}},
            "required": ["type", "name"],
        },
    ],
}
_SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["source"],
    "additionalProperties": False,
    "properties": {
        "version": {"type": "integer", "enum": [1]},
        "experiment": {"type": "string", "default": "default"},
        "display_name": {"type": "string"},
        "source": _SOURCE,
        "script": {"type": "string", "description": "A path in the source; or give `command`."},
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "One item per argument, never a shell line.",
        },
        "command": {"type": "array", "items": {"type": "string"}},
        "distribution": _DISTRIBUTION,
        "resources": {
            "type": "object",
            "properties": {
                "cluster": {"type": "string", "default": "local"},
                "node_count": COUNT_OR_NULL,
                "gpus_per_node": {"type": "integer", "minimum": 0, "default": 0},
            },
        },
        "environment": {
            "type": "object",
            "properties": {"name": {"type": "string", "default": "system"}, "version": {"type": "string"}},
        },
        "environment_variables": {
            "type": "object",
            "additionalProperties": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"secret": {"type": "string"}}},
                ]
            },
        },
        "limits": {
            "type": "object",
            "properties": {
                "timeout_s": COUNT_OR_NULL,
                "grace_s": {"type": "integer", "minimum": 0, "default": 10},
                "retries": {"type": "integer", "minimum": 0, "default": 0},
            },
        },
        "priority": {
            "type": "integer",
            "minimum": -10,
            "maximum": 10,
            "default": 0,
            "description": (
                "Of the runs that wait, the highest is placed first. Above 0 only for owners of "
                "the workspace."
            ),
        },
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "example": {
        "source": {"type": "example", "name": "digits-ddp"},
        "script": "train.py",
        "arguments": ["--epochs", "20"],
        "distribution": {
            "type": "pytorch",
            "communication_backend": "gloo",
            "process_count": 2,
            "node_count": 1,
        },
        "environment": {"name": "TrainHub-PyTorch-2.13"},
    },
}
RUN_SPEC = {"application/json": _SPEC}
