"""Specs whose exports are kept as files, and strategies for any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.wizard.specs import SNAPSHOT, SPECS, golden
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
# Every field is set.
FULL: dict[str, Any] = {
    "experiment": "vision 2.0",
    "display_name": 'Birds "third" try\n#SBATCH --nodes=99',
    "script": "train.py",
    "arguments": ["--epochs", "20", "--data", "$TRAINHUB_INPUT_BIRDS", "--rank", "$RANK", "it's $$5"],
    "distribution": {"type": "pytorch", "process_count": 8, "node_count": 2, "communication_backend": "gloo"},
    "resources": {
        "cluster": "lab",
        "gpus_per_node": 4,
        "memory": "64GiB",
        "cpus": 32,
        "disk": "100GiB",
    },
    "environment": {"name": "TrainHub-PyTorch-2.13", "version": "3"},
    "environment_variables": {
        "NOTE": 'a "b"\n$HOME $$ ${{ secrets.x }} $(id) `id` # no comment',
        "NUMBER": "1e3",
        "WANDB_API_KEY": {"secret": "wandb"},
    },
    "limits": {"timeout_s": 5400, "grace_s": 60, "retries": 2},
    "checkpoint": {"keep": 5, "path": "saved models"},
    "inputs": {
        "birds": {"datastore": "images", "path": "birds/2024", "mode": "mount"},
        "labels": {"dataset": "labels", "version": 3},
    },
    "outputs": {"datastore": "results", "path": "vision"},
    "priority": -3,
    "tags": {"team": "a b", "été": "☃"},
}
GOLDEN_SPECS: dict[str, RunSpec] = {
    "full": read_spec({"source": SNAPSHOT} | FULL),
    **{
        name: golden(name)
        for name in (
            "single_hostile",
            "pytorch_per_process",
            "pytorch_per_node",
            "mpi",
            "tensorflow_servers_on_fewer_nodes",
        )
    },
}


def all_specs() -> Iterator[tuple[str, RunSpec]]:
    """Yields all golden specs, those of the wizard's tests, and those of the examples."""
    yield from GOLDEN_SPECS.items()
    for name in SPECS:
        yield name, golden(name)
    for path in sorted(EXAMPLES.glob("*/example.json")):
        yield path.parent.name, read_spec(json.loads(path.read_text())["spec"])
