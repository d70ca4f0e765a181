"""Readings of one device that need several calls, or the result of the previous call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from trainhub_node.gpu.background_reader import BackgroundReader
from trainhub_node.gpu.library import DirectQuery, FieldId, GpuLibrary, ListedGpu
from trainhub_node.gpu.nvml_errors import NOT_FOUND, NOT_SUPPORTED, SUCCESS, QueryFailed, QueryUnsupported
from trainhub_node.gpu.readings import CounterRates, Reading, present

KIB, MIB = 2**10, 2**20
LINK_COUNT: FieldId = (91, 0)
# As the scope of a field: the sum over all links.
ALL_LINKS = 0xFFFFFFFF
# Fields of bytes sent and received, with a link or ALL_LINKS, and their unit. The second pair came with
# NVLink 5.
NVLINK_DATA_FIELDS, NVLINK_COUNT_FIELDS = (138, 139, KIB), (202, 204, 1)
MAX_32_BIT = 2**32
PCIE_TX, PCIE_RX = (197, 0), (198, 0)
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
# In MiB per second. All these numbers are those of nvml.h.
GPM_PCIE_TX, GPM_PCIE_RX = 20, 21


class GpuReader:
    """Takes the readings of one device while the library is open. It stores the last GPM sample and counters,
    from which rates are computed."""

    def __init__(self, gpu: ListedGpu, library: GpuLibrary, background: BackgroundReader) -> None:
        self._gpu = gpu
        self._library = library
        self._background = background
        self._rates = CounterRates()
        self._gpm_sample: object = None
        self._gpm_values: Mapping[int, float] | None = None
        self._has_pcie_counters = True
        self._nvlink_fields: tuple[int, int, int, Sequence[int]] | None = None

    def readings(self) -> list[Reading]:
        """Returns the readings of the device; GPM before PCIe, which takes some values from it."""
        direct = [
            _direct_reading(self._gpu.handle, query) for query in self._library.direct_queries(self._gpu)
        ]
        profile = Reading(tuple(GPM.values()), self.gpm)
        if self._gpu.parent:
            return [*direct, profile]
        return [
            *direct,
            profile,
            Reading(("pcie_tx_bytes_s", "pcie_rx_bytes_s"), self.pcie),
            Reading(("nvlink_tx_bytes_s", "nvlink_rx_bytes_s"), self.nvlink),
        ]

    def close(self) -> None:
        if self._gpm_sample is not None:
            self._library.free_gpm_sample(self._gpm_sample)
        self._gpm_sample = None

    def processes(self) -> Mapping[int, int | None]:
        return self._library.processes(self._gpu.handle)

    def process_utilization(self, since_us: int) -> Sequence[tuple[int, int, float]]:
        """Returns (process id, time in µs, SM share in %) of the samples since then; empty without
        samples."""
        try:
            return self._library.process_utilization(self._gpu.handle, since_us)
        except QueryFailed as error:
            if error.code in (SUCCESS, NOT_FOUND):
                return ()
            raise

    def gpm(self, _: float) -> Mapping[str, float]:
        """Returns the means of the GPM metrics since the previous sample, empty for the first one. Only GPM
        reports the utilization of a MIG device."""
        if self._gpm_sample is None and not self._library.has_gpm(self._gpu):
            raise QueryUnsupported(NOT_SUPPORTED, "it has no GPM, which came with Hopper")
        # Empty instead of None from here on: the device has GPM, so `pcie` waits for it instead of the slow
        # call.
        self._gpm_values = {}
        previous, self._gpm_sample = self._gpm_sample, self._library.take_gpm_sample(self._gpu)
        if previous is None:
            return {}
        try:
            self._gpm_values = self._library.gpm_metrics(
                previous, self._gpm_sample, (*GPM, GPM_PCIE_TX, GPM_PCIE_RX)
            )
        finally:
            self._library.free_gpm_sample(previous)
        numbers = {GPM[metric]: value for metric, value in self._gpm_values.items() if metric in GPM}
        return (
            numbers | present(utilization_pct=numbers.get("engine_active_pct"))
            if self._gpu.parent
            else numbers
        )

    def pcie(self, now: float) -> Mapping[str, float]:
        """Returns the PCIe rates in bytes per second: from GPM, else from 64-bit counters, else from the call
        that takes too long for the one-second loop and runs in the background."""
        if self._gpm_values is not None and (not self._gpm_values or GPM_PCIE_TX in self._gpm_values):
            rates = {metric: value * MIB for metric, value in self._gpm_values.items()}
            return present(pcie_tx_bytes_s=rates.get(GPM_PCIE_TX), pcie_rx_bytes_s=rates.get(GPM_PCIE_RX))
        rates_of_counters = self._pcie_counter_rates(now) if self._has_pcie_counters else None
        if rates_of_counters is not None:
            return rates_of_counters
        return self._background.latest(
            self._gpu.uuid, partial(self._library.pcie_throughput, self._gpu.handle)
        )

    def _pcie_counter_rates(self, now: float) -> Mapping[str, float] | None:
        """Returns the rates, or None unless the counters have 64 bits: a busy link wraps 32-bit counters many
        times a second."""
        try:
            counters = self._library.fields(self._gpu.handle, (PCIE_TX, PCIE_RX), wide=True)
        except QueryUnsupported:
            self._has_pcie_counters = False
            return None
        rates = present(
            pcie_tx_bytes_s=self._rates.rate("pcie tx", counters.get(PCIE_TX), now),
            pcie_rx_bytes_s=self._rates.rate("pcie rx", counters.get(PCIE_RX), now),
        )
        # NVML may report a 32-bit counter as a 64-bit value, so only a value above 32 bits proves the width.
        # The rates above are computed in any case, to remember the counters.
        return rates if max(counters.values()) >= MAX_32_BIT else None

    def nvlink(self, now: float) -> Mapping[str, float]:
        if self._nvlink_fields is None:
            self._nvlink_fields = self._find_nvlink_fields()
        tx, rx, unit, links = self._nvlink_fields
        counters = self._library.fields(
            self._gpu.handle, [(field, link) for field in (tx, rx) for link in links]
        )
        totals = {
            field: {
                link: counters[field, link] * unit
                for counter_field, link in counters
                if counter_field == field
            }
            for field in (tx, rx)
        }
        return present(
            nvlink_tx_bytes_s=self._rates.total("nvlink tx", totals[tx], now),
            nvlink_rx_bytes_s=self._rates.total("nvlink rx", totals[rx], now),
        )

    def _find_nvlink_fields(self) -> tuple[int, int, int, Sequence[int]]:
        """Returns (sent, received, unit, links), with ALL_LINKS where the driver adds all links up."""
        count = int(self._library.fields(self._gpu.handle, [LINK_COUNT])[LINK_COUNT])
        if not count:
            raise QueryUnsupported(NOT_SUPPORTED, "it has no NVLink")
        # The totals of the driver first: they need two fields, where single links need two for each link.
        for links in ((ALL_LINKS,), tuple(range(count))):
            for tx, rx, unit in (NVLINK_DATA_FIELDS, NVLINK_COUNT_FIELDS):
                try:
                    self._library.fields(
                        self._gpu.handle, [(field, link) for field in (tx, rx) for link in links]
                    )
                except QueryUnsupported:
                    continue
                return tx, rx, unit, links
        raise QueryUnsupported(NOT_SUPPORTED, "its NVLinks have no traffic counters")


def _direct_reading(handle: object, query: DirectQuery) -> Reading:
    keys, call = query
    return Reading(keys, lambda _: call(handle))
