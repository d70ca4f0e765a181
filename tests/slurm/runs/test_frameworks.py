"""Every framework trains over two nodes of a real Slurm, in an interpreter that the person's account may only
read; and what ranks write reaches the hub byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples.checks import check_tracked, check_trained
from tests.examples.table import TWO_HOSTS, Training
from tests.journeys.runs import sha256
from tests.slurm.hub import CLUSTER, SlurmHub

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.mpi, pytest.mark.frameworks, pytest.mark.long]
TRAINING_S = 300
# One torchrun on each node, mpirun, TF_CONFIG, and DeepSpeed.
TRAINED = ("digits-torchrun", "mpi-digits", "tf-multiworker", "deepspeed-digits")
TRAININGS = [training for training in TWO_HOSTS if training.example in TRAINED]
# Slurm's own default is too small for a framework.
MEMORY = {"memory": 1_800_000_000}

DRIVER = "70_driver_log_{}.txt"
PYTORCH = {"type": "pytorch", "communication_backend": "gloo", "node_count": 2}
# What torchrun itself says of its peers depends on who ends first.
TORCHRUN = (
    "exec torchrun --nproc_per_node 1 --nnodes 2 --node_rank $NODE_RANK "
    "--master_addr $MASTER_ADDR --master_port $MASTER_PORT main.py 2> /dev/null"
)
SHAPES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "single": ({}, ("70_driver_log.txt",)),
    "pytorch": (
        {"distribution": {**PYTORCH, "process_count": 4}},
        tuple(map(DRIVER.format, range(4))),
    ),
    "torchrun": (
        {"distribution": PYTORCH, "command": ["bash", "-c", TORCHRUN], "script": ""},
        tuple(map(DRIVER.format, range(2))),
    ),
    "mpi": (
        {"distribution": {"type": "mpi", "process_count_per_node": 2, "node_count": 2}},
        tuple(map(DRIVER.format, range(4))),
    ),
    "tensorflow": (
        {"distribution": {"type": "tensorflow", "worker_count": 2}, "resources": {"node_count": 2}},
        tuple(map(DRIVER.format, ("worker_0", "worker_1"))),
    ),
}
# No framework in it: these would write to the log, too.
WRITE = """
import json, os, random
task = json.loads(os.environ["TF_CONFIG"])["task"] if "TF_CONFIG" in os.environ else {}
ranks = [os.environ.get(name) for name in ("OMPI_COMM_WORLD_RANK", "RANK")] + [task.get("index"), 0]
seed = int(next(rank for rank in ranks if rank is not None))
data = random.Random(seed).randbytes(300_000)
data = memoryview(data + b"\\r\\n\\0\\x1b[2J\\xff\\n" * 9 + b"no newline")
while data:
    data = data[os.write(1, data[:70_001]):]
"""


def written(rank: int) -> bytes:
    """What the script WRITE writes as this rank."""
    random_bytes = random.Random(rank).randbytes(300_000)  # noqa: S311 - no secret
    return random_bytes + b"\r\n\0\x1b[2J\xff\n" * 9 + b"no newline"


@pytest.fixture(scope="module", autouse=True)
def _interpreter(slurm_hub: SlurmHub, frameworks_python: str) -> None:
    slurm_hub.use_interpreter(frameworks_python)


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: SlurmHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.example)
def test_trains(slurm_hub: SlurmHub, training: Training) -> None:
    spec = training.spec(CLUSTER)
    spec["resources"] |= MEMORY
    run = slurm_hub.runs.submit(spec)
    check_trained(slurm_hub.runs, run, training, TRAINING_S)
    assert len({member["node"] for member in slurm_hub.runs.detail(run)["members"]}) == 2
    check_tracked(slurm_hub.runs, run, training)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_log_is_what_its_rank_has_written(slurm_hub: SlurmHub, shape: str) -> None:
    changes, names = SHAPES[shape]
    resources = {**changes.get("resources", {}), **MEMORY}
    run = slurm_hub.script(WRITE, **{**changes, "resources": resources})
    slurm_hub.completes(run)
    logs = [name for name in slurm_hub.runs.logs(run) if name.startswith("70_")]
    assert sorted(logs) == sorted(names)
    for rank, name in enumerate(names):
        assert sha256(slurm_hub.runs.log(run, name)) == sha256(written(rank)), name
