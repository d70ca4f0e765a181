"""Golden specs: one for every way to fill in the wizard, and hostile ones."""

from __future__ import annotations

from typing import Any

from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec

SNAPSHOT = {"type": "snapshot", "id": "5f" * 32}
TORCHRUN = [
    "torchrun",
    "--nproc_per_node",
    "4",
    "--nnodes",
    "2",
    "--node_rank",
    "$NODE_RANK",
    "--master_addr",
    "$MASTER_ADDR",
    "--master_port",
    "$MASTER_PORT",
    "train.py",
]
HOSTILE = [
    "a b",
    "x;rm -rf /",
    "it's",
    'say "hi"',
    "$(id)",
    "`id`",
    "${HOME",
    "$$HOME",
    "naïve ☃",
    "",
    "*",
    "\n",
    "\\",
    "#",
    "-5",
    "--",
]

SPECS: dict[str, dict[str, Any]] = {
    "single": {"script": "train.py"},
    "single_with_arguments": {
        "script": "src/train.py",
        "arguments": ["--epochs", 50, "--output_dir", "./outputs"],
    },
    "single_hostile": {"script": "my $HOME/tr ain.py", "arguments": HOSTILE},
    "single_command": {
        "command": ["torchrun", "--nproc_per_node", "4", "train.py"],
        "resources": {"gpus_per_node": 4},
    },
    "hostile_command": {"command": ["./run me", *HOSTILE]},
    "example": {"source": {"type": "example", "name": "digits-ddp"}, "script": "train.py"},
    "pytorch_per_process": {
        "script": "train.py",
        "distribution": {"type": "pytorch", "process_count": 8, "node_count": 2},
        "resources": {"gpus_per_node": 4},
    },
    "pytorch_gloo": {
        "script": "train.py",
        "distribution": {"type": "pytorch", "process_count": 2, "communication_backend": "gloo"},
    },
    "pytorch_per_node": {"command": TORCHRUN, "distribution": {"type": "pytorch", "node_count": 2}},
    "mpi": {
        "script": "train.py",
        "distribution": {"type": "mpi", "process_count_per_node": 4, "node_count": 2},
    },
    "tensorflow": {"script": "train.py", "distribution": {"type": "tensorflow", "worker_count": 2}},
    "tensorflow_servers_on_fewer_nodes": {
        "script": "train.py",
        "distribution": {"type": "tensorflow", "worker_count": 3, "parameter_server_count": 2},
        "resources": {"node_count": 2},
    },
    "whole_nodes": {
        "script": "train.py",
        "distribution": {"type": "pytorch", "process_count": 8, "node_count": 2},
        "resources": {"gpus_per_node": "all"},
    },
    "limits": {"script": "train.py", "limits": {"timeout_s": 5400, "grace_s": 0, "retries": 3}},
    "priority": {"script": "train.py", "priority": -3},
    "odd_time_limit": {"script": "train.py", "limits": {"timeout_s": 90061}},
    "variables": {
        "script": "train.py",
        "environment_variables": {
            "DATA": "/data/a b",
            "EMPTY": "",
            "LINES": "\n one\n two ",
            "KEY": {"secret": "wandb"},
        },
    },
    "inputs": {
        "script": "train.py",
        "arguments": ["--data", "$TRAINHUB_INPUT_BIRDS"],
        "inputs": {"birds": {"datastore": "images", "path": "birds/2024"}, "all": {"datastore": "images"}},
    },
    "outputs": {"script": "train.py", "outputs": {"datastore": "results", "path": "vision/birds"}},
    "named": {
        "script": "train.py",
        "experiment": "vision 2.0",
        "display_name": "third try",
        "tags": {"team": "a b", "baseline": ""},
        "environment": {"name": "TrainHub-PyTorch-2.13", "version": "1"},
    },
    "system_interpreter": {
        "script": "train.py",
        "environment": {"name": "system", "version": "/usr/bin/python3"},
    },
}


def golden(name: str) -> RunSpec:
    return read_spec({"source": SNAPSHOT} | SPECS[name])
