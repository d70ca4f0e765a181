"""A rank that raises under mpirun tells its traceback and ends, whatever else hangs on the way out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SITES = Path(__file__).resolve().parents[3] / "trainhub_node" / "sitecustomize"
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2")
PLAIN = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("shard 1 is empty")
MPI.COMM_WORLD.allreduce(1)
"""
TORCH = (
    """
import os
from mpi4py import MPI
import torch.distributed as dist
rank = MPI.COMM_WORLD.rank
os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
os.environ["MASTER_PORT"] = str(20000 + MPI.COMM_WORLD.bcast(os.getpid()) % 20000)
dist.init_process_group("gloo")
"""
    + PLAIN
)


@pytest.mark.mpi
@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [PLAIN, TORCH], ids=["mpi4py", "torch, which catches what an excepthook writes"]
)
def test_a_rank_that_raises_tells_why_and_ends_the_others(frameworks_python: str, script: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(SITES)}
    command = [*MPIRUN, frameworks_python, "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "ValueError: shard 1 is empty" in done.stderr
