"""RunSpec as the OpenAPI schema shows it. What is accepted is decided by trainhub_launch.spec alone; a test
compares."""

from __future__ import annotations

from typing import Any

_COUNT = {"type": "integer", "minimum": 1}
_COUNT_OR_NULL = {**_COUNT, "type": ["integer", "null"]}
_DISTRIBUTION: dict[str, Any] = {
    "description": "Nothing: one process.",
    "oneOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["pytorch"]},
                "communication_backend": {"type": "string", "enum": ["nccl", "gloo", "mpi"]},
                "process_count": {
                    **_COUNT_OR_NULL,
                    "description": "Of all nodes; absent: one process a node.",
                },
                "node_count": _COUNT,
            },
            "required": ["type"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["mpi"]},
                "process_count_per_node": _COUNT,
                "node_count": _COUNT,
            },
            "required": ["type"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["tensorflow"]},
                "worker_count": _COUNT,
                "parameter_server_count": {"type": "integer", "minimum": 0},
            },
            "required": ["type"],
        },
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
                "node_count": _COUNT_OR_NULL,
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
                "timeout_s": _COUNT_OR_NULL,
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
