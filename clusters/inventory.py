"""A heartbeat as rows: checked, because the message comes from another machine."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from trainhub_launch.errors import WireError
from trainhub_launch.report import GpuFact, Heartbeat

MOST_GPUS = 64
MOST_SLOTS = 100_000
MOST_BYTES = 2**62
VITALS_OF_GPU = ("memory_used_bytes", "utilization_pct", "power_w", "temperature_c")


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
        **({"boot_id": _text("boot_id", beat.boot_id, 64)} if beat.boot_id else {}),
        "interpreters": [
            {"path": _text("interpreters", item.path, 1000), "version": _text("interpreters", item.version, 64)}
            for item in beat.interpreters[:64]
        ],
    }


def devices(beat: Heartbeat) -> dict[str, dict[str, Any]]:
    """UUID -> the fields of Gpu."""
    if len(beat.gpus) > MOST_GPUS:
        raise WireError(f"a node cannot have {len(beat.gpus)} GPUs; {MOST_GPUS} is the most")
    return {
        _text("gpu uuid", gpu.uuid, 96): {
            "index": _whole("gpu index", gpu.index, 1024),
            "name": _text("gpu name", gpu.name, 100),
            "memory_bytes": None if gpu.memory_bytes is None else _whole("gpu memory_bytes", gpu.memory_bytes, MOST_BYTES),
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
        "gpus": {gpu.uuid: _gpu_vitals(gpu) for gpu in beat.gpus},
    }


def _gpu_vitals(gpu: GpuFact) -> dict[str, float]:
    told = {name: _number(name, getattr(gpu, name)) for name in VITALS_OF_GPU}
    return {name: value for name, value in told.items() if value is not None}


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
