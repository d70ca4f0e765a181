"""RunSpec as the OpenAPI schema documents it. trainhub_launch.spec_reader alone decides what is accepted; a
test compares both."""

from __future__ import annotations

from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.frameworks.json_schema import COUNT_OR_NULL
from trainhub_launch.spec import ALL_GPUS
from trainhub_launch.spec_reader import MOST_GPUS

_DISTRIBUTION: dict[str, object] = {
    "description": (
        "How the run's processes are distributed. If it is omitted, the run is a single process."
    ),
    "oneOf": [
        {"type": "null"},
        *(item.configuration.json_schema for item in FRAMEWORKS.values() if item.configuration is not None),
    ],
}
_ALL_GPUS = {"type": "string", "enum": [ALL_GPUS]}
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
        {
            "type": "object",
            "description": "A folder of a git repository. The hub fetches it when the run is submitted.",
            "properties": {
                "type": {"type": "string", "enum": ["git"]},
                "url": {
                    "type": "string",
                    "description": "As in https://host/owner/name; with https://${NAME}@host/… the hub signs "
                    "in by the secret NAME, with ssh://${NAME}@host/… by the deploy key that this secret is.",
                },
                "ref": {
                    "type": "string",
                    "description": "A tag, a branch or a whole commit; by default the repository's branch.",
                },
                "path": {"type": "string", "description": "A folder of the repository."},
                "commit": {"type": "string", "description": "Set by the hub, with `id`."},
                "id": {"type": "string", "description": "Set by the hub: the snapshot of the files."},
            },
            "required": ["type", "url"],
        },
    ],
}
_SPEC: dict[str, object] = {
    "type": "object",
    "required": ["source"],
    "additionalProperties": False,
    "properties": {
        "version": {"type": "integer", "enum": [1]},
        "experiment": {"type": "string", "default": "default"},
        "display_name": {"type": "string"},
        "source": _SOURCE,
        "script": {
            "type": "string",
            "description": "The path of the script in the source. Use either `script` or `command`.",
        },
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The arguments, one item for each. No shell interprets them.",
        },
        "command": {"type": "array", "items": {"type": "string"}},
        "distribution": _DISTRIBUTION,
        "resources": {
            "type": "object",
            "properties": {
                "cluster": {
                    "type": "string",
                    "description": (
                        "By default the workspace's only cluster, else the one that you, or others of the "
                        "workspace, used last, else the one with the most free GPUs."
                    ),
                },
                "node_count": COUNT_OR_NULL,
                "gpus_per_node": {
                    "oneOf": [{"type": "integer", "minimum": 0, "maximum": MOST_GPUS}, _ALL_GPUS],
                    "default": 0,
                    "description": (
                        f'"{ALL_GPUS}": every GPU of each node. The run gets nodes whose GPUs are all free '
                        "and work, and all its nodes have the same number of them."
                    ),
                },
                "memory": {
                    "oneOf": [
                        {"type": "string"},
                        {"type": "integer", "minimum": 64 * 2**20},
                        {"type": "null"},
                    ],
                    "description": "Memory on each node, like 64GiB, or in bytes. The run cannot use more.",
                },
                "cpus": {
                    "type": ["number", "null"],
                    "minimum": 0.1,
                    "description": "CPU cores on each node, also parts of one. The run cannot use more.",
                },
                "disk": {
                    "oneOf": [
                        {"type": "string"},
                        {"type": "integer", "minimum": 64 * 2**20},
                        {"type": "null"},
                    ],
                    "description": (
                        "Disk on each node, like 100GiB, or in bytes. The run is ended when it has used more."
                    ),
                },
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
        "checkpoint": {
            "type": "object",
            "description": "What is kept of the run's checkpoints, and with which one it begins.",
            "properties": {
                "keep": {"type": "integer", "minimum": 1, "maximum": 100, "default": 3},
                "path": {"type": "string", "default": "checkpoints"},
                "resume_from": {"type": "string", "description": "The id of a run."},
                "number": COUNT_OR_NULL,
                "datastore": {"type": "string", "description": "Where they are kept; empty: on the hub."},
                "datastore_path": {"type": "string", "description": "Below the datastore."},
            },
        },
        "inputs": {
            "type": "object",
            "description": "The data that the run reads, by a name. Scripts find its path in "
            "TRAINHUB_INPUT_<NAME>; by reference its URI, and in TRAINHUB_INPUT_<NAME>_FILES the path of a "
            "file with an address for each file.",
            "additionalProperties": {
                "type": "object",
                "oneOf": [{"required": ["datastore"]}, {"required": ["dataset"]}],
                "properties": {
                    "datastore": {"type": "string"},
                    "dataset": {"type": "string"},
                    "version": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Of the dataset; by default the newest one.",
                    },
                    "path": {"type": "string", "description": "Below the datastore; by default all of it."},
                    "mode": {
                        "type": "string",
                        "enum": ["mount", "download", "reference"],
                        "description": "How it reaches the script; by default as the datastore allows.",
                    },
                    "if_changed": {
                        "type": "string",
                        "enum": ["fail", "use"],
                        "default": "fail",
                        "description": "What becomes of the run if files are not those of the dataset's "
                        "version any more: it fails, or uses what is there now.",
                    },
                },
            },
        },
        "outputs": {
            "type": "object",
            "description": "Where what the script leaves in outputs/ goes instead of the hub: into a folder "
            "of its own in a datastore that runs can write into.",
            "required": ["datastore"],
            "properties": {
                "datastore": {"type": "string"},
                "path": {"type": "string", "description": "Below the datastore; by default directly in it."},
            },
        },
        "priority": {
            "type": "integer",
            "minimum": -10,
            "maximum": 10,
            "default": 0,
            "description": (
                "Waiting runs with a higher priority are placed first. A run below 0 may be stopped and "
                "queued again for one of higher priority. A value above 0 requires the role owner in the "
                "workspace."
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
