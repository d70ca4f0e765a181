"""Simulated GPUs on the nodes of a Slurm, as the driver of real ones would show them to each task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simulator import Scenario, environment
from simulator.models import h100
from tests.slurm.cluster import SlurmCluster
from tests.slurm.configuration import GPUS_PER_NODE

# The variable in which Slurm says to each task on which node it is.
NODE = "$SLURMD_NODENAME"
SCENARIO = f"scenario-{NODE}"


@contextmanager
def simulated_gpus(cluster: SlurmCluster, celsius: float = 60) -> Iterator[None]:
    """Tasks that start within see them. `show` changes what they tell."""
    show(cluster, celsius)
    # Accounts of people must reach the library, which usually lies in a folder of root's.
    variables = environment(cluster.folder / SCENARIO, cluster.folder / "simulator")
    prolog = cluster.folder / "etc" / "task-prolog"
    # What it prints becomes the environment of the task.
    lines = [f'echo "export {name}={value}"' for name, value in variables.items()]
    prolog.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    prolog.chmod(0o755)
    cluster.reconfigure(TaskProlog=str(prolog))
    try:
        yield
    finally:
        cluster.reconfigure()


def show(cluster: SlurmCluster, celsius: float) -> None:
    """Gives all GPUs of all nodes this temperature, and numbers of a training."""
    values = {
        "temperature_c": celsius,
        "utilization_pct": 87,
        "memory_used_bytes": 40 * 2**30,
        "power_w": 512,
    }
    for node in cluster.nodes:
        gpus = [f"{node} gpu {number}" for number in range(GPUS_PER_NODE)]
        path = cluster.folder / SCENARIO.replace(NODE, node)
        Scenario([h100(name, values=values, processes="visible") for name in gpus]).write(path)
        path.chmod(0o644)
