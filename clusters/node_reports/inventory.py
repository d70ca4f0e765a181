"""Converts a heartbeat into values of rows, and validates them, because the message is not trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypedDict

from clusters.models import Node
from trainhub_launch.data.downloads import KEY_LENGTH
from trainhub_launch.errors import WireError
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter, NetworkPort
from trainhub_launch.metrics import COUNTERS, GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import GpuProcess, RankRead

# Bounds on what one node can make the hub store. They are far above real machines: a faulty or hostile agent
# must not fill the database or the pages of everybody.
MAX_GPUS = 64
MAX_SLOTS = 100_000
MAX_BYTES = 2**62
# GPUs and their MIG devices.
MAX_DEVICES = 512
MAX_PROCESSES = 256
MAX_PORTS = 64


class GpuFields(TypedDict, total=False):
    """Fields of a Gpu row that a heartbeat sets. Those of a GPU that cannot be read lack the last three."""

    index: int
    name: str
    memory_bytes: int | None
    state: str
    error: str
    parent: str
    profile: str
    mig: bool


class ProcessVitals(TypedDict):
    """A process on a GPU, as stored in `Node.vitals`. `run` is empty for a process outside TrainHub."""

    pid: int
    name: str
    user: str
    memory_bytes: int | None
    sm_pct: float | None
    run: str
    attempt: int
    rank: int | None


class RankVitals(TypedDict):
    """How fast a rank reads, as stored in `Node.vitals`: see trainhub_launch.telemetry.RankRead."""

    run: str
    attempt: int
    rank: int
    calls_bytes_s: float
    storage_bytes_s: float


class PortVitals(TypedDict):
    """A fast network port, as stored in `Node.vitals`."""

    device: str
    port: int
    state: str
    rate: str
    link_layer: str


class Vitals(TypedDict, total=False):
    """`Node.vitals`: the numbers of the last heartbeat; empty before the first one. `gpus`, `counters` and
    `processes` are by UUID. `gpus_elsewhere` and `disk_low` are present only while they apply."""

    at: str
    cpu_pct: float | None
    memory_used_bytes: int
    disk_free_bytes: int
    host: dict[str, float]
    gpus: dict[str, dict[str, float]]
    counters: dict[str, dict[str, int]]
    processes: dict[str, list[ProcessVitals]]
    network_ports: list[PortVitals]
    reads: list[RankVitals]
    gpus_elsewhere: list[str]
    disk_low: bool


def facts(beat: Heartbeat) -> dict[str, object]:
    """Returns the fields of Node that a heartbeat sets. Raises WireError that names the invalid field."""
    return {
        "hostname": _text("hostname", beat.hostname, 255),
        "address": _text("address", beat.address, 64),
        "interface": _text("interface", beat.interface, 32),
        "agent_version": _text("agent_version", beat.agent_version, 32),
        "cores": _whole("cores", beat.cores, MAX_SLOTS),
        "slots": _whole("slots", beat.slots, MAX_SLOTS),
        "memory_bytes": _whole("memory_bytes", beat.memory_bytes, MAX_BYTES),
        "infiniband": bool(beat.infiniband),
        "mpi": _text("mpi", beat.mpi, 64),
        "run_as": _text("run_as", beat.run_as, 64),
        "driver": _text("driver", beat.driver, 64),
        "cuda": _text("cuda", beat.cuda, 32),
        "nvml": _text("nvml", beat.nvml, 500),
        "capabilities": _text("capabilities", " ".join(beat.capabilities), 500),
        "separation": _text("separation", beat.separation, 1000),
        "containers": _text("containers", beat.containers, 1000),
        "data_cache_bytes": _whole("data_cache_bytes", beat.data_cache_bytes, MAX_BYTES),
        "data_lists": [_text("data_lists", key, KEY_LENGTH) for key in beat.data_lists],
        # An agent that cannot read the boot id must not look like a machine that was restarted.
        **({"boot_id": _text("boot_id", beat.boot_id, 64)} if beat.boot_id else {}),
        "interpreters": [
            {
                "path": _text("interpreters", item.path, 1000),
                "version": _text("interpreters", item.version, 64),
            }
            for item in beat.interpreters[:64]
        ],
    }


def devices(beat: Heartbeat) -> dict[str, GpuFields]:
    """Returns UUID -> fields of Gpu. Raises WireError for invalid values."""
    whole = sum(not gpu.parent for gpu in beat.gpus)
    if whole > MAX_GPUS:
        raise WireError(f"a node cannot have {whole} GPUs; {MAX_GPUS} is the most")
    if len(beat.gpus) > MAX_DEVICES:
        raise WireError(
            f"a node cannot have {len(beat.gpus)} GPUs and MIG devices; {MAX_DEVICES} is the most"
        )
    return {
        _text("gpu uuid", gpu.uuid, 96): {
            "index": _whole("gpu index", gpu.index, 1024),
            "name": _text("gpu name", gpu.name, 100),
            "memory_bytes": _bytes_or_none(gpu.memory_bytes),
            "state": gpu.state,
            "error": _text("gpu error", gpu.error, 1000),
            "parent": _text("gpu parent", gpu.parent, 96),
            "profile": _text("gpu profile", gpu.profile, 32),
            "mig": gpu.mig,
        }
        for gpu in beat.gpus
    }


def vitals(beat: Heartbeat, at: datetime) -> Vitals:
    """Returns the latest numbers for `Node.vitals`. Metrics that the machine cannot measure are absent."""
    return {
        "at": at.isoformat(),
        "cpu_pct": _number("cpu_pct", beat.cpu_pct),
        "memory_used_bytes": _whole("memory_used_bytes", beat.memory_used_bytes, MAX_BYTES),
        "disk_free_bytes": _whole("disk_free_bytes", beat.disk_free_bytes, MAX_BYTES),
        "host": _numbers(beat.numbers, HOST_KEYS),
        "gpus": {gpu.uuid: _numbers(gpu.numbers, GPU_KEYS) for gpu in beat.gpus},
        "counters": {gpu.uuid: _counters(gpu) for gpu in beat.gpus if gpu.counters},
        "processes": {gpu.uuid: _processes(gpu) for gpu in beat.gpus if gpu.processes},
        "network_ports": [_port(port) for port in beat.network_ports[:MAX_PORTS]],
        "reads": [_read(item) for item in beat.reads],
    }


def _numbers(reported: Mapping[str, float], metrics: Collection[str]) -> dict[str, float]:
    # The types were checked by `numbers_of`. NaN and infinity are not valid JSON and mean "unknown".
    return {name: value for name, value in reported.items() if name in metrics and math.isfinite(value)}


def _counters(gpu: GpuFact) -> dict[str, int]:
    counters = gpu.counters
    if counters and not (min(counters.values()) >= 0 and max(counters.values()) <= MAX_BYTES):
        raise WireError(f"counters of a GPU must be whole numbers between 0 and {MAX_BYTES}")
    return {name: value for name, value in counters.items() if name in COUNTERS}


def _processes(gpu: GpuFact) -> list[ProcessVitals]:
    return [_process(item) for item in gpu.processes[:MAX_PROCESSES]]


def _process(process: GpuProcess) -> ProcessVitals:
    return {
        "pid": _whole("pid", process.pid, 2**31),
        "name": _text("process name", process.name, 200),
        "user": _text("process user", process.user, 64),
        "memory_bytes": _bytes_or_none(process.memory_bytes),
        "sm_pct": _number("sm_pct", process.sm_pct),
        "run": _text("process run", process.run, 32),
        "attempt": _whole("process attempt", process.attempt, 2**31),
        "rank": process.rank,
    }


def _port(port: NetworkPort) -> PortVitals:
    return {
        "device": _text("port device", port.device, 64),
        "port": _whole("port", port.port, 1024),
        "state": _text("port state", port.state, 32),
        "rate": _text("port rate", port.rate, 64),
        "link_layer": _text("port link_layer", port.link_layer, 32),
    }


def _read(item: RankRead) -> RankVitals:
    return {
        "run": _text("run of reads", item.run, 32),
        "attempt": _whole("attempt of reads", item.attempt, 2**31),
        "rank": _whole("rank of reads", item.rank, 2**31),
        "calls_bytes_s": _number("calls_bytes_s", item.calls_bytes_s) or 0.0,
        "storage_bytes_s": _number("storage_bytes_s", item.storage_bytes_s) or 0.0,
    }


def _bytes_or_none(value: int | None) -> int | None:
    return None if value is None else _whole("gpu memory_bytes", value, MAX_BYTES)


def _text(field: str, value: object, max_length: int) -> str:
    # PostgreSQL cannot store NUL in a text: one node's report must be refused here, not fail in the database.
    if not isinstance(value, str) or len(value) > max_length or "\x00" in value:
        raise WireError(f"{field} must be a string of at most {max_length} characters")
    return value


def _whole(field: str, value: object, maximum: int) -> int:
    # In Python, True is an int.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise WireError(f"{field} must be a whole number between 0 and {maximum}")
    return value


def _number(field: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError(f"{field} must be a number")
    # NaN and infinity are not valid JSON and mean "unknown".
    return value if math.isfinite(value) else None


def interpreters_of(node: Node) -> tuple[Interpreter, ...]:
    return tuple(Interpreter(path=item["path"], version=item["version"]) for item in node.interpreters)
