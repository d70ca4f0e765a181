"""The inventory with a library that is slow, stuck or must be opened again. A library in memory replaces
NVML."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from trainhub_node.gpu import gpu_events, gpu_inventory
from trainhub_node.gpu.gpu_events import LibraryEvent
from trainhub_node.gpu.gpu_inventory import GpuInventory
from trainhub_node.gpu.gpu_processes import no_owner
from trainhub_node.gpu.library import DirectQuery, FieldId, ListedGpu
from trainhub_node.gpu.nvml_errors import DRIVER_NOT_LOADED, GPU_IS_LOST, NOT_SUPPORTED, TIMEOUT, from_code


class Driver:
    """`gpus` are there, and a session knows those that were when it was opened and never left. `hold`: a
    reading waits for it."""

    def __init__(self, *gpus: str) -> None:
        self.gpus = gpus
        self.visible: tuple[str, ...] = ()
        self.fails = 0
        self.opened = self.closed = self.listings = 0
        self.hold: threading.Event | None = None
        self.inside = threading.Event()
        self.never = threading.Event()

    def open(self) -> tuple[str, str]:
        self.opened += 1
        if self.fails:
            raise from_code(self.fails, "no")
        self.visible = self.gpus
        return "570.1", "12.8"

    def lose(self, removed: str) -> None:
        self.gpus = tuple(gpu for gpu in self.gpus if gpu != removed)
        self.visible = tuple(gpu for gpu in self.visible if gpu != removed)

    def close(self) -> None:
        self.closed += 1

    def count(self) -> int:
        return len(self.visible)

    def list_gpus(self) -> list[ListedGpu]:
        self.listings += 1
        return [
            ListedGpu(uuid=gpu, index=at, name="GPU", handle=gpu, handle_id=at + 1)
            for at, gpu in enumerate(self.visible)
        ]

    def register_events(self, _: ListedGpu) -> bool:
        return True

    def wait_for_event(self) -> LibraryEvent:
        self.never.wait(0.01)
        raise from_code(TIMEOUT, "Timeout")

    def direct_queries(self, _: ListedGpu) -> Sequence[DirectQuery]:
        return [(("power_w",), self._power)]

    def _power(self, gpu: str) -> Mapping[str, float]:
        self.inside.set()
        if self.hold is not None:
            self.hold.wait(30)
        if gpu not in self.visible:
            raise from_code(GPU_IS_LOST, "GPU is lost")
        return {"power_w": 70}

    def fields(self, *_: Any, **__: Any) -> Mapping[FieldId, float]:
        raise from_code(NOT_SUPPORTED, "Not Supported")

    def pcie_throughput(self, _: Any) -> Mapping[str, float]:
        raise from_code(NOT_SUPPORTED, "Not Supported")

    def has_gpm(self, _: ListedGpu) -> bool:
        return False

    def processes(self, _: Any) -> Mapping[int, int | None]:
        return {}

    def process_utilization(self, _: Any, since_us: int) -> Sequence[tuple[int, int, float]]:
        return ()


def inventory_of(driver: Driver) -> GpuInventory:
    return GpuInventory(driver, no_owner)  # type: ignore[arg-type]  # it takes no GPM samples


class TestListing:
    def test_is_seldom_while_all_is_well(self) -> None:
        driver = Driver("GPU-1", "GPU-2")
        inventory = inventory_of(driver)
        for second in range(300):
            inventory.read(second)
        inventory.close()

        assert driver.listings == 5

    def test_is_done_soon_when_the_number_of_gpus_changes(self) -> None:
        driver = Driver("GPU-1", "GPU-2")
        inventory = inventory_of(driver)
        inventory.read(0)
        driver.visible = ("GPU-1",)
        states = [fact.state for fact in inventory.read(5)]
        inventory.close()

        assert states == ["ok", "lost"]


class TestReopening:
    def test_brings_back_a_gpu_that_only_a_new_session_can_see(self) -> None:
        driver = Driver("GPU-1")
        inventory = inventory_of(driver)
        inventory.read(0)
        driver.lose("GPU-1")
        assert inventory.read(1)[0].state == "lost"
        assert inventory.read(62)[0].state == "lost"
        driver.gpus = ("GPU-1",)
        (fact,) = inventory.read(200)
        inventory.close()

        assert (fact.state, fact.numbers) == ("ok", {"power_w": 70})
        assert driver.opened == driver.closed

    def test_is_left_alone_while_another_gpu_works(self) -> None:
        driver = Driver("GPU-1", "GPU-2")
        inventory = inventory_of(driver)
        for second in range(300):
            if second == 5:
                driver.lose("GPU-1")
            facts = inventory.read(second)
        inventory.close()

        assert [fact.state for fact in facts] == ["lost", "ok"]
        assert driver.opened == 1

    def test_is_tried_ever_more_seldom(self) -> None:
        driver = Driver("GPU-1")
        driver.fails = DRIVER_NOT_LOADED
        inventory = inventory_of(driver)
        for second in range(3600):
            inventory.read(second)

        assert 3600 / 60 <= driver.opened < 150


class TestClosing:
    def test_does_not_wait_for_ever_for_a_reading_that_hangs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gpu_inventory, "CLOSE_TIMEOUT_S", 0.05)
        driver = Driver("GPU-1")
        driver.hold = threading.Event()
        inventory = inventory_of(driver)
        reading = threading.Thread(target=inventory.read, args=(0,))
        reading.start()
        assert driver.inside.wait(20)

        inventory.close()
        assert driver.closed == 0
        driver.hold.set()
        reading.join(20)

    def test_leaves_the_library_open_while_the_listener_is_inside(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gpu_events, "JOIN_TIMEOUT_S", 0.05)
        driver, go_on = Driver("GPU-1"), threading.Event()
        monkeypatch.setattr(driver, "wait_for_event", lambda: go_on.wait(30))
        inventory = inventory_of(driver)
        inventory.read(0)

        inventory.close()
        assert driver.closed == 0
        go_on.set()

    def test_reads_nothing_afterwards(self) -> None:
        driver = Driver("GPU-1")
        inventory = inventory_of(driver)
        inventory.read(0)
        inventory.close()
        (fact,) = inventory.read(100)

        assert (fact.uuid, fact.numbers) == ("GPU-1", {})
        assert (driver.opened, driver.closed) == (1, 1)
