"""What one call may cost: the limits of the issue, measured in CPU time and in memory that Python
allocates."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
MAX_CPU_S = 2.0
MAX_MEMORY_BYTES = 64 * 2**20


def cpu_s() -> float:
    """Of this process and of the processes that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def bounded(
    call: Callable[[], T], *, max_cpu_s: float = MAX_CPU_S, max_memory_bytes: int = MAX_MEMORY_BYTES
) -> T:
    """What `call` returns, after a second call has shown that neither costs more than it may. `call` must be
    repeatable."""
    gc.collect()
    begun = cpu_s()
    result = call()
    spent = cpu_s() - begun
    assert spent < max_cpu_s, f"{spent:.1f} s of CPU, allowed are {max_cpu_s:.1f}"
    tracemalloc.start()
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < max_memory_bytes, (
        f"{peak / 2**20:.0f} MiB of memory, allowed are {max_memory_bytes / 2**20:.0f}"
    )
    return result
