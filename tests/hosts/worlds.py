"""Two hosts with four simulated GPUs each, and runs that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator import Scenario
from simulator.models import h100
from tests.hosts.bench import CLUSTER, Hosts
from tests.hub import eventually

GPUS = 4
WAITING = "import time; print('here', flush=True); time.sleep(600)"


def numbers(host: int, gpu: int, shift: int = 0) -> dict[str, float]:
    """Different for each GPU."""
    place = GPUS * host + gpu
    return {
        "utilization_pct": 20 + 5 * place + shift,
        "memory_used_bytes": (place + 1 + shift) * 2**30,
        "power_w": 200 + 10 * place + shift,
        "temperature_c": 40 + place + shift,
        "sm_clock_mhz": 1000 + 50 * place + shift,
    }


def world(host: int) -> Scenario:
    return Scenario(
        [
            h100(f"host {host} gpu {gpu}", values=numbers(host, gpu), processes="visible")
            for gpu in range(GPUS)
        ]
    )


@contextmanager
def gpu_hosts(folder: Path, python: str) -> Iterator[Hosts]:
    built = Hosts(folder, python, worlds=[world(0), world(1)])
    try:
        yield built.start()
    finally:
        built.stop()


@contextmanager
def runs_on(gpus: Hosts) -> Iterator[list[str]]:
    """Two runs, each with two ranks and two GPUs on either host."""
    processes = {"type": "pytorch", "communication_backend": "gloo", "process_count": 4, "node_count": 2}
    until_all_gpus_are_there(gpus)
    runs = [gpus.script(WAITING, distribution=processes, resources={"gpus_per_node": 2}) for _ in range(2)]
    for run in runs:
        gpus.runs.until(run, "Running")
    yield runs
    gpus.hub.cancel_all()


def until_all_gpus_are_there(gpus: Hosts) -> None:
    eventually(lambda: _devices(gpus) == 2 * GPUS, 40, "both hosts tell of their GPUs")


def _devices(gpus: Hosts) -> int:
    return sum(len(node["gpus"]) for node in gpus.runs.get("/nodes/") if node["cluster"] == CLUSTER)
