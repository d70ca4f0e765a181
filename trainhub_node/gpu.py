"""The only module that talks to NVML. What a device does not support is None, and hides nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from trainhub_launch.machine import GpuFact

log = logging.getLogger(__name__)
T = TypeVar("T")


class Gpus:
    """The devices of this machine; none, said once and loudly, where NVML is absent."""

    def __init__(self) -> None:
        self._unsupported: set[tuple[str, str]] = set()
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        except pynvml.NVMLError as error:
            log.warning("This node offers no GPUs: NVML says %s", error)
            self._handles = []

    def facts(self) -> tuple[GpuFact, ...]:
        return tuple(fact for index, handle in enumerate(self._handles) if (fact := self._fact(index, handle)) is not None)

    def _fact(self, index: int, handle: Any) -> GpuFact | None:
        try:
            uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
        except pynvml.NVMLError as error:
            log.warning("GPU %d does not answer: %s", index, error)
            return None
        memory = self._ask(uuid, "memory", lambda: _memory(handle))
        return GpuFact(
            uuid=uuid, index=index, name=self._ask(uuid, "name", lambda: _text(pynvml.nvmlDeviceGetName(handle))) or "GPU",
            memory_bytes=memory[0] if memory else None,
            numbers={key: value for key, value in self._numbers(uuid, handle, memory).items() if value is not None},
        )

    def _numbers(self, uuid: str, handle: Any, memory: tuple[int, int] | None) -> dict[str, float | None]:
        return {
            "memory_used_bytes": memory[1] if memory else None,
            "utilization_pct": self._ask(uuid, "utilization", lambda: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
            "power_w": self._ask(uuid, "power", lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            "temperature_c": self._ask(
                uuid, "temperature", lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
            ),
        }

    def _ask(self, uuid: str, what: str, call: Callable[[], T]) -> T | None:
        if (uuid, what) in self._unsupported:
            return None
        try:
            return call()
        except pynvml.NVMLError_NotSupported:
            self._unsupported.add((uuid, what))
            return None
        except pynvml.NVMLError as error:
            log.debug("GPU %s, %s: %s", uuid, what, error)
            return None


def _memory(handle: Any) -> tuple[int, int]:
    """(total, used); the driver's own reserve is not counted as used, as in nvidia-smi."""
    try:
        told = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        told = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(told.total), int(told.used)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
