"""A GPU's counters, arranged for people: what says that it is ill, and how it is linked to its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainhub_launch.metrics import COUNTERS

HEALTH = (
    "ecc_corrected",
    "ecc_uncorrected",
    "retired_pages_sbe",
    "retired_pages_dbe",
    "retired_pages_pending",
    "remapped_rows_corrected",
    "remapped_rows_uncorrected",
    "remapped_rows_pending",
    "remapped_rows_failed",
    "pcie_replays",
    "nvlink_crc_errors",
    "nvlink_replays",
    "xid_count",
)
GRAVE = {
    "ecc_uncorrected",
    "retired_pages_dbe",
    "retired_pages_pending",
    "remapped_rows_uncorrected",
    "remapped_rows_pending",
    "remapped_rows_failed",
}
"""Those of which one is too many."""


@dataclass(frozen=True)
class HealthCount:
    label: str
    value: int
    is_grave: bool


@dataclass(frozen=True)
class GpuHealth:
    """What the device tells; of what it does not, nothing is claimed."""

    raised: tuple[HealthCount, ...]
    zero: tuple[HealthCount, ...]


def health(counters: Mapping[str, int]) -> GpuHealth | None:
    """None where the device tells no such counter."""
    counts = [
        HealthCount(COUNTERS[key][0], counters[key], is_grave=key in GRAVE and counters[key] > 0)
        for key in HEALTH
        if key in counters
    ]
    if not counts:
        return None
    return GpuHealth(
        tuple(count for count in counts if count.value), tuple(count for count in counts if not count.value)
    )


def link(counters: Mapping[str, int]) -> str:
    """ "PCIe 4 ×16", and what it could be where it is less; "" where the device does not tell."""
    now = _link(counters, "")
    most = _link(counters, "_max")
    if not now:
        return ""
    return now if most in ("", now) else f"{now} of {most.removeprefix('PCIe ')}"


def _link(counters: Mapping[str, int], end: str) -> str:
    generation, width = counters.get(f"pcie_generation{end}"), counters.get(f"pcie_width{end}")
    return "" if generation is None or width is None else f"PCIe {generation} ×{width}"
