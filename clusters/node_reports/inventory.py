"""A heartbeat as rows: checked, because the message comes from another machine."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from clusters.models import Node
from trainhub_launch.errors import WireError
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter, NetworkPort
from trainhub_launch.metrics import COUNTERS, GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import GpuProcess

MOST_GPUS = 64
MOST_SLOTS = 100_000
MOST_BYTES = 2**62
MOST_DEVICES = 512
"""With the MIG devices of its GPUs."""
MOST_PROCESSES = 256
MOST_PORTS = 64


def facts(beat: Heartbeat) -> dict[str, Any]:
    """The fields of Node that a heartbeat decides; raises WireError naming what is wrong."""
    return {
        "hostname": _text("hostname", beat.hostname, 255),
        "address": _text("address", beat.address, 64),
        "interface": _text("interface", beat.interface, 32),
        "agent_version": _text("agent_version", beat.agent_version, 32),
        "cores": _whole("cores", beat.cores, MOST_SLOTS),
        "slots": _whole("slots", beat.slots, MOST_SLOTS),
        "memory_bytes": _whole("memory_bytes", beat.memory_bytes, MOST_BYTES),
        "infiniband": bool(beat.infiniband),
        "mpi": _text("mpi", beat.mpi, 64),
        "run_as": _text("run_as", beat.run_as, 64),
        "driver": _text("driver", beat.driver, 64),
        "cuda": _text("cuda", beat.cuda, 32),
        "nvml": _text("nvml", beat.nvml, 500),
        **({"boot_id": _text("boot_id", beat.boot_id, 64)} if beat.boot_id else {}),
        "interpreters": [
            {
                "path": _text("interpreters", item.path, 1000),
                "version": _text("interpreters", item.version, 64),
            }
            for item in beat.interpreters[:64]
        ],
    }


def devices(beat: Heartbeat) -> dict[str, dict[str, Any]]:
    """UUID -> the fields of Gpu."""
    whole = sum(not gpu.parent for gpu in beat.gpus)
    if whole > MOST_GPUS:
        raise WireError(f"a node cannot have {whole} GPUs; {MOST_GPUS} is the most")
    if len(beat.gpus) > MOST_DEVICES:
        raise WireError(
            f"a node cannot have {len(beat.gpus)} GPUs and MIG devices; {MOST_DEVICES} is the most"
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


def vitals(beat: Heartbeat, at: datetime) -> dict[str, Any]:
    """The latest numbers, as the pages show them. A number that the machine cannot tell is absent."""
    return {
        "at": at.isoformat(),
        "cpu_pct": _number("cpu_pct", beat.cpu_pct),
        "memory_used_bytes": _whole("memory_used_bytes", beat.memory_used_bytes, MOST_BYTES),
        "disk_free_bytes": _whole("disk_free_bytes", beat.disk_free_bytes, MOST_BYTES),
        "host": _numbers(beat.numbers, HOST_KEYS),
        "gpus": {gpu.uuid: _numbers(gpu.numbers, GPU_KEYS) for gpu in beat.gpus},
        "counters": {gpu.uuid: _counters(gpu) for gpu in beat.gpus if gpu.counters},
        "processes": {gpu.uuid: _processes(gpu) for gpu in beat.gpus if gpu.processes},
        "network_ports": [_port(port) for port in beat.network_ports[:MOST_PORTS]],
    }


def _numbers(told: Mapping[str, float], known: Collection[str]) -> dict[str, float]:
    # Of the right types already (`numbers_of`); NaN and infinity are not JSON, and mean no more than "not
    # known" here.
    return {name: value for name, value in told.items() if name in known and math.isfinite(value)}


def _counters(gpu: GpuFact) -> dict[str, int]:
    told = gpu.counters
    if told and not (min(told.values()) >= 0 and max(told.values()) <= MOST_BYTES):
        raise WireError(f"counters of a GPU must be whole numbers between 0 and {MOST_BYTES}")
    return {name: value for name, value in told.items() if name in COUNTERS}


def _processes(gpu: GpuFact) -> list[dict[str, Any]]:
    return [_process(item) for item in gpu.processes[:MOST_PROCESSES]]


def _process(process: GpuProcess) -> dict[str, Any]:
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


def _port(port: NetworkPort) -> dict[str, Any]:
    return {
        "device": _text("port device", port.device, 64),
        "port": _whole("port", port.port, 1024),
        "state": _text("port state", port.state, 32),
        "rate": _text("port rate", port.rate, 64),
        "link_layer": _text("port link_layer", port.link_layer, 32),
    }


def _bytes_or_none(value: int | None) -> int | None:
    return None if value is None else _whole("gpu memory_bytes", value, MOST_BYTES)


def _text(field: str, value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most or "\x00" in value:
        raise WireError(f"{field} must be a string of at most {most} characters")
    return value


def _whole(field: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise WireError(f"{field} must be a whole number between 0 and {most}")
    return value


def _number(field: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError(f"{field} must be a number")
    # NaN and infinity are not JSON, and mean no more than "not known" here.
    return value if math.isfinite(value) else None


def interpreters_of(node: Node) -> tuple[Interpreter, ...]:
    return tuple(Interpreter(path=item["path"], version=item["version"]) for item in node.interpreters)
