"""The pages of two hosts with simulated GPUs, as a browser sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from simulator import Scenario
from tests.hosts.bench import Hosts
from tests.hosts.worlds import GPUS, gpu_hosts, runs_on
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    with gpu_hosts(tmp_path_factory.mktemp("gpus"), frameworks_python) as built:
        yield built


@pytest.fixture(scope="module")
def two_runs(gpus: Hosts) -> Iterator[list[str]]:
    with runs_on(gpus) as runs:
        yield runs


class TestPages:
    @pytest.fixture
    def tab(self, browser: Any, gpus: Hosts) -> Iterator[Any]:
        """A page of the hub's owner."""
        window = {"width": 1440, "height": 1000}
        context = browser.new_context(
            base_url=gpus.hub.browser_url, ignore_https_errors=True, viewport=window
        )
        tab = context.new_page()
        tab.goto("/sign-in/")
        tab.fill("input[name=username]", "admin")
        tab.fill("input[name=password]", gpus.hub.password)
        tab.press("input[name=password]", "Enter")
        tab.wait_for_url(f"{gpus.hub.browser_url}/")
        yield tab
        context.close()

    def test_the_charts_of_a_run_move_with_its_gpus(self, gpus: Hosts, two_runs: list[str], tab: Any) -> None:
        run = gpus.runs.detail(two_runs[0])
        own = {
            uuid for entry in gpus.runs.get(f"/runs/{two_runs[0]}/series/")["ranks"] for uuid in entry["gpus"]
        }
        tab.goto(f"/runs/{run['number']}/gpus/")
        read = tab.locator("figure", has=tab.locator(".ch-title:text-is('Temperature')")).locator(".ch-read")
        for celsius in (61, 77):
            for host in gpus.hosts:
                assert host.world is not None
                for gpu in host.world.gpus:
                    gpu.values["temperature_c"] = celsius if gpu.uuid in own else 33
                host.show(host.world)
            expect(read).to_have_text(f"{celsius} °C", timeout=30_000)
        assert tab.locator(".ch-chip", has_text="rank").count() == len(own)
        tab.click("text=All GPUs of its nodes")
        eventually(lambda: read.inner_text() == "33–77 °C", 30, "the others too")

    def test_the_node_s_page_tells_each_gpu_with_its_run_and_rank(
        self, gpus: Hosts, two_runs: list[str], tab: Any
    ) -> None:
        host = gpus.hosts[0]
        tab.goto(f"/nodes/{host.name}/")
        cards = tab.locator(".th-devices > li")
        assert cards.count() == GPUS
        for index, gpu in enumerate((host.world or Scenario()).gpus):
            text = cards.nth(index).inner_text()
            assert f"{gpu.values['utilization_pct']:.0f} %" in text
            assert f"{gpu.values['power_w']:.0f} W" in text
            assert "run " in text
        eventually(lambda: tab.locator("figure:visible").count() >= 5, 20, "charts are drawn")
