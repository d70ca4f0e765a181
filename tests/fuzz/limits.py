"""The properties that every parser of foreign bytes has: it returns or refuses in the agreed way, in bounded
time and memory."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import TypeVar

from tests.attacks.parsers.bounds import MAX_CPU_S, MAX_MEMORY_BYTES, cpu_s

T = TypeVar("T")


def answer_of(call: Callable[[], T], *refusals: type[BaseException]) -> T | None:
    """What `call` returns, or None where it refuses by one of `refusals`. Any other exception, two seconds of
    CPU or 64 MiB more of memory at its peak fail the test."""
    before, begun = _peak_bytes(), cpu_s()
    try:
        return call()
    except refusals:
        return None
    finally:
        spent, grown = cpu_s() - begun, _peak_bytes() - before
        assert spent < MAX_CPU_S, f"{spent:.1f} s of CPU"
        assert grown < MAX_MEMORY_BYTES, f"{grown / 2**20:.0f} MiB more memory at the peak"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
