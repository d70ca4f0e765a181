"""What one device tells by several calls, at moments that the test chooses; and questions that take long."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.hub import eventually
from trainhub_node.gpu.background_reader import BackgroundReader
from trainhub_node.gpu.library import DirectQuery, FieldId, ListedGpu
from trainhub_node.gpu.nvml_errors import NOT_SUPPORTED, UNKNOWN, QueryFailed, from_code
from trainhub_node.gpu.reader import ALL_LINKS, LINK_COUNT, PCIE_RX, PCIE_TX, GpuReader

KIB, MIB = 2**10, 2**20
SENT, RECEIVED = 138, 139
WIDE = 2**32


class Driver:
    """A library of one device: `counters` by field, `profile` by GPM metric, `samples` those not freed."""

    def __init__(self) -> None:
        self.counters: dict[FieldId, float] = {}
        self.profile: dict[int, float] | None = None
        self.slow: dict[str, float] | QueryFailed = {}
        self.samples: list[object] = []
        self.fails = False

    def direct_queries(self, _: ListedGpu) -> Sequence[DirectQuery]:
        return ()

    def fields(self, _: Any, field_ids: Sequence[FieldId], *, wide: bool = False) -> Mapping[FieldId, float]:
        answers = {field: self.counters[field] for field in field_ids if field in self.counters}
        if not answers:
            raise from_code(NOT_SUPPORTED, f"Not Supported, wide={wide}")
        return answers

    def pcie_throughput(self, _: Any) -> Mapping[str, float]:
        if isinstance(self.slow, QueryFailed):
            raise self.slow
        return self.slow

    def has_gpm(self, _: ListedGpu) -> bool:
        return self.profile is not None

    def take_gpm_sample(self, _: ListedGpu) -> object:
        if self.fails:
            raise from_code(UNKNOWN, "Unknown Error")
        sample = object()
        self.samples.append(sample)
        return sample

    def gpm_metrics(self, before: object, after: object, metrics: Sequence[int]) -> Mapping[int, float]:
        assert {id(before), id(after)} <= {id(sample) for sample in self.samples}
        return {metric: value for metric, value in (self.profile or {}).items() if metric in metrics}

    def free_gpm_sample(self, sample: object) -> None:
        self.samples.remove(sample)


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def reader(driver: Driver) -> GpuReader:
    gpu = ListedGpu(uuid="GPU-1", index=0, name="GPU", handle=None, handle_id=1)
    # The driver here is a stand-in with the methods that are used.
    return GpuReader(gpu, driver, BackgroundReader(5))  # type: ignore[arg-type]


class TestNvlink:
    def links(self, driver: Driver, *sent_and_received: tuple[int, int]) -> None:
        driver.counters = {LINK_COUNT: len(sent_and_received)}
        for link, (sent, received) in enumerate(sent_and_received):
            driver.counters |= {(SENT, link): sent, (RECEIVED, link): received}

    def test_is_the_growth_of_all_links_in_bytes_a_second(self, driver: Driver, reader: GpuReader) -> None:
        self.links(driver, (0, 1000), (0, 1000))
        assert reader.nvlink(100) == {}
        self.links(driver, (500, 1000), (2000, 1250))

        assert reader.nvlink(105) == {"nvlink_tx_bytes_s": 500 * KIB, "nvlink_rx_bytes_s": 50 * KIB}

    def test_is_what_the_driver_adds_up_where_it_does(self, driver: Driver, reader: GpuReader) -> None:
        self.links(driver, (0, 0), (0, 0))
        driver.counters |= {(SENT, ALL_LINKS): 0, (RECEIVED, ALL_LINKS): 0}
        reader.nvlink(0)
        self.links(driver, (500, 500), (500, 500))
        driver.counters |= {(SENT, ALL_LINKS): 1000, (RECEIVED, ALL_LINKS): 1000}

        assert reader.nvlink(5) == {"nvlink_tx_bytes_s": 200 * KIB, "nvlink_rx_bytes_s": 200 * KIB}

    def test_is_absent_once_after_a_reset(self, driver: Driver, reader: GpuReader) -> None:
        self.links(driver, (9000, 9000))
        reader.nvlink(0)
        self.links(driver, (10, 9000))
        assert reader.nvlink(5) == {"nvlink_rx_bytes_s": 0}
        self.links(driver, (60, 9000))

        assert reader.nvlink(10)["nvlink_tx_bytes_s"] == 10 * KIB

    def test_leaves_links_out_that_are_down(self, driver: Driver, reader: GpuReader) -> None:
        self.links(driver, (0, 0), (0, 0))
        del driver.counters[SENT, 1], driver.counters[RECEIVED, 1]
        reader.nvlink(0)
        driver.counters |= {(SENT, 0): 50, (RECEIVED, 0): 100}

        assert reader.nvlink(5) == {"nvlink_tx_bytes_s": 10 * KIB, "nvlink_rx_bytes_s": 20 * KIB}


class TestPcie:
    def test_is_the_growth_of_counters(self, driver: Driver, reader: GpuReader) -> None:
        driver.counters = {PCIE_TX: WIDE, PCIE_RX: WIDE}
        reader.pcie(0)
        driver.counters = {PCIE_TX: WIDE + 5000, PCIE_RX: WIDE + 500}

        assert reader.pcie(5) == {"pcie_tx_bytes_s": 1000, "pcie_rx_bytes_s": 100}

    def test_is_absent_once_after_a_counter_wrapped(self, driver: Driver, reader: GpuReader) -> None:
        driver.counters = {PCIE_TX: 2**64 - 1, PCIE_RX: WIDE}
        reader.pcie(0)
        driver.counters = {PCIE_TX: 7, PCIE_RX: WIDE + 5}

        assert reader.pcie(5) == {"pcie_rx_bytes_s": 1}

    def test_is_never_taken_from_counters_that_may_have_32_bits(
        self, driver: Driver, reader: GpuReader
    ) -> None:
        driver.counters, driver.slow = {PCIE_TX: 10, PCIE_RX: 10}, {"pcie_tx_bytes_s": 1}
        reader.pcie(0)
        driver.counters = {PCIE_TX: WIDE - 1, PCIE_RX: 20}

        assert eventually(lambda: reader.pcie(5)) == {"pcie_tx_bytes_s": 1}

    def test_goes_over_to_the_counters_without_a_gap_once_they_show_more(
        self, driver: Driver, reader: GpuReader
    ) -> None:
        driver.counters = {PCIE_TX: WIDE - 1000, PCIE_RX: 0}
        reader.pcie(0)
        driver.counters = {PCIE_TX: WIDE + 4000, PCIE_RX: 500}

        assert reader.pcie(5) == {"pcie_tx_bytes_s": 1000, "pcie_rx_bytes_s": 100}

    def test_waits_for_the_profile_before_it_takes_the_slow_call(
        self, driver: Driver, reader: GpuReader
    ) -> None:
        driver.profile, driver.slow = {20: 7, 21: 3}, {"pcie_tx_bytes_s": 1}
        reader.gpm(0)
        assert reader.pcie(0) == {}
        reader.gpm(5)

        assert reader.pcie(5) == {"pcie_tx_bytes_s": 7 * MIB, "pcie_rx_bytes_s": 3 * MIB}

    def test_comes_by_the_slow_call_where_the_profile_has_none(
        self, driver: Driver, reader: GpuReader
    ) -> None:
        driver.profile, driver.slow = {1: 50}, {"pcie_tx_bytes_s": 1}
        reader.gpm(0)
        reader.gpm(5)

        assert eventually(lambda: reader.pcie(5)) == {"pcie_tx_bytes_s": 1}


class TestProfile:
    def test_frees_every_sample(self, driver: Driver, reader: GpuReader) -> None:
        driver.profile = {1: 50}
        for second in range(0, 50, 5):
            reader.gpm(second)
        assert len(driver.samples) == 1
        reader.close()

        assert driver.samples == []

    def test_goes_on_after_a_sample_that_failed(self, driver: Driver, reader: GpuReader) -> None:
        driver.profile = {1: 50}
        reader.gpm(0)
        driver.fails = True
        with pytest.raises(QueryFailed):
            reader.gpm(5)
        driver.fails = False

        assert reader.gpm(10) == {"engine_active_pct": 50}
        reader.close()
        assert driver.samples == []


class TestSlowReader:
    def test_never_keeps_the_asker_waiting(self) -> None:
        slow, is_running, go_on = BackgroundReader(0.01), threading.Event(), threading.Event()

        def hangs() -> Mapping[str, float]:
            is_running.set()
            go_on.wait(20)
            return {"pcie_tx_bytes_s": 1}

        assert slow.latest("GPU-1", hangs) == {}
        assert is_running.wait(20)
        assert slow.latest("GPU-1", hangs) == {}
        go_on.set()
        assert eventually(lambda: slow.latest("GPU-1", hangs)) == {"pcie_tx_bytes_s": 1}
        assert slow.close()

    def test_tells_the_asker_what_went_wrong_once_and_asks_again(self) -> None:
        slow, answers = BackgroundReader(0.01), iter([from_code(UNKNOWN, "Unknown Error")])

        def fails_first() -> Mapping[str, float]:
            for error in answers:
                raise error
            return {"pcie_tx_bytes_s": 1}

        def values() -> Mapping[str, float] | str:
            try:
                return slow.latest("GPU-1", fails_first)
            except QueryFailed as error:
                return error.message

        assert eventually(values) in ("Unknown Error", {"pcie_tx_bytes_s": 1})
        assert eventually(lambda: values() == {"pcie_tx_bytes_s": 1})
        assert slow.close()
