"""One device of an open library: what it takes more than one call, or the call before, to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from trainhub_node.gpu.background_reader import SlowReader
from trainhub_node.gpu.library import Field, Found, Library, Plain
from trainhub_node.gpu.nvml_errors import NOT_FOUND, NOT_SUPPORTED, SUCCESS, Unanswered, Unsupported
from trainhub_node.gpu.readings import Rates, Reading, known

KIB, MIB = 2**10, 2**20
LINK_COUNT: Field = (91, 0)
ALL_LINKS = 0xFFFFFFFF
NVLINK_DATA, NVLINK_COUNT = (138, 139, KIB), (202, 204, 1)
"""Fields of what was sent and received, with a link or ALL_LINKS, and their unit. The second pair came with
NVLink 5."""
NARROW = 2**32
PCIE_SENT, PCIE_RECEIVED = (197, 0), (198, 0)
GPM = {
    1: "engine_active_pct",
    2: "sm_active_pct",
    3: "sm_occupancy_pct",
    5: "tensor_active_pct",
    10: "dram_active_pct",
    11: "fp64_active_pct",
    12: "fp32_active_pct",
    13: "fp16_active_pct",
}
GPM_PCIE_SENT, GPM_PCIE_RECEIVED = 20, 21
"""In MiB a second. All these numbers are nvml.h's."""


class Reader:
    def __init__(self, found: Found, library: Library, slow: SlowReader) -> None:
        self._found = found
        self._library = library
        self._slow = slow
        self._rates = Rates()
        self._sample: Any = None
        self._profile: Mapping[int, float] | None = None
        self._counts_pcie = True
        self._nvlink: tuple[int, int, int, Sequence[int]] | None = None

    def table(self) -> list[Reading]:
        """Its questions; the numbers of the profile before PCIe, which takes some from there."""
        plain = [_plain(self._found.handle, one) for one in self._library.plain(self._found)]
        profile = Reading(tuple(GPM.values()), self.profile)
        if self._found.parent:
            return [*plain, profile]
        return [
            *plain,
            profile,
            Reading(("pcie_tx_bytes_s", "pcie_rx_bytes_s"), self.pcie),
            Reading(("nvlink_tx_bytes_s", "nvlink_rx_bytes_s"), self.nvlink),
        ]

    def close(self) -> None:
        if self._sample is not None:
            self._library.free(self._sample)
        self._sample = None

    def processes(self) -> Mapping[int, int | None]:
        return self._library.processes(self._found.handle)

    def usage(self, since_us: int) -> Sequence[tuple[int, int, float]]:
        try:
            return self._library.usage(self._found.handle, since_us)
        except Unanswered as error:
            if error.code in (SUCCESS, NOT_FOUND):
                return ()
            raise

    def profile(self, _: float) -> Mapping[str, float]:
        """Means since the sample before. It is the only thing that tells how busy a MIG device is."""
        if self._sample is None and not self._library.has_gpm(self._found):
            raise Unsupported(NOT_SUPPORTED, "it has no GPM, which came with Hopper")
        self._profile = {}
        before, self._sample = self._sample, self._library.sample(self._found)
        if before is None:
            return {}
        try:
            self._profile = self._library.between(
                before, self._sample, (*GPM, GPM_PCIE_SENT, GPM_PCIE_RECEIVED)
            )
        finally:
            self._library.free(before)
        told = {GPM[metric]: value for metric, value in self._profile.items() if metric in GPM}
        return told | known(utilization_pct=told.get("engine_active_pct")) if self._found.parent else told

    def pcie(self, now: float) -> Mapping[str, float]:
        """By GPM, else by counters, else by the call that takes so long that nothing else may wait for it."""
        if self._profile is not None and (not self._profile or GPM_PCIE_SENT in self._profile):
            told = {metric: value * MIB for metric, value in self._profile.items()}
            return known(pcie_tx_bytes_s=told.get(GPM_PCIE_SENT), pcie_rx_bytes_s=told.get(GPM_PCIE_RECEIVED))
        counted = self._counted_pcie(now) if self._counts_pcie else None
        if counted is not None:
            return counted
        return self._slow.latest(self._found.uuid, partial(self._library.throughput, self._found.handle))

    def _counted_pcie(self, now: float) -> Mapping[str, float] | None:
        """None unless the counters are seen to be wide: some have 32 bits, which a busy link wraps many times
        a second."""
        try:
            told = self._library.fields(self._found.handle, (PCIE_SENT, PCIE_RECEIVED), wide=True)
        except Unsupported:
            self._counts_pcie = False
            return None
        rates = known(
            pcie_tx_bytes_s=self._rates.rate("pcie tx", told.get(PCIE_SENT), now),
            pcie_rx_bytes_s=self._rates.rate("pcie rx", told.get(PCIE_RECEIVED), now),
        )
        return rates if max(told.values()) >= NARROW else None

    def nvlink(self, now: float) -> Mapping[str, float]:
        if self._nvlink is None:
            self._nvlink = self._way_of_nvlink()
        sent, received, unit, links = self._nvlink
        told = self._library.fields(
            self._found.handle, [(field, link) for field in (sent, received) for link in links]
        )
        totals = {
            field: {link: told[field, link] * unit for one, link in told if one == field}
            for field in (sent, received)
        }
        return known(
            nvlink_tx_bytes_s=self._rates.total("nvlink tx", totals[sent], now),
            nvlink_rx_bytes_s=self._rates.total("nvlink rx", totals[received], now),
        )

    def _way_of_nvlink(self) -> tuple[int, int, int, Sequence[int]]:
        """Which fields, for all links at once where the driver adds them up."""
        count = int(self._library.fields(self._found.handle, [LINK_COUNT])[LINK_COUNT])
        if not count:
            raise Unsupported(NOT_SUPPORTED, "it has no NVLink")
        for links in ((ALL_LINKS,), tuple(range(count))):
            for sent, received, unit in (NVLINK_DATA, NVLINK_COUNT):
                try:
                    self._library.fields(
                        self._found.handle, [(field, link) for field in (sent, received) for link in links]
                    )
                except Unsupported:
                    continue
                return sent, received, unit, links
        raise Unsupported(NOT_SUPPORTED, "its NVLinks tell no traffic")


def _plain(handle: Any, one: Plain) -> Reading:
    keys, ask = one
    return Reading(keys, lambda _: ask(handle))
