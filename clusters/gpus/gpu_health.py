"""Presents the counters of a GPU: error counters, and its PCIe link."""

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
# Counters for which any value above 0 is a problem.
SERIOUS = {
    "ecc_uncorrected",
    "retired_pages_dbe",
    "retired_pages_pending",
    "remapped_rows_uncorrected",
    "remapped_rows_pending",
    "remapped_rows_failed",
}


@dataclass(frozen=True)
class HealthCount:
    label: str
    value: int
    is_serious: bool


@dataclass(frozen=True)
class GpuHealth:
    """The error counters that a GPU reports, those above 0 apart from the others."""

    nonzero: tuple[HealthCount, ...]
    zero: tuple[HealthCount, ...]


def health(counters: Mapping[str, int]) -> GpuHealth | None:
    """Returns the error counters, or None if the device reports none."""
    counts = [
        HealthCount(COUNTERS[key][0], counters[key], is_serious=key in SERIOUS and counters[key] > 0)
        for key in HEALTH
        if key in counters
    ]
    if not counts:
        return None
    return GpuHealth(
        tuple(count for count in counts if count.value), tuple(count for count in counts if not count.value)
    )


def link(counters: Mapping[str, int]) -> str:
    """Returns a text such as "PCIe 4 ×16", with the maximum if that is more; "" if it is unknown."""
    current = _link(counters, "")
    maximum = _link(counters, "_max")
    if not current:
        return ""
    return current if maximum in ("", current) else f"{current} of {maximum.removeprefix('PCIe ')}"


def _link(counters: Mapping[str, int], end: str) -> str:
    generation, width = counters.get(f"pcie_generation{end}"), counters.get(f"pcie_width{end}")
    return "" if generation is None or width is None else f"PCIe {generation} ×{width}"
