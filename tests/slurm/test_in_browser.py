"""A run on a Slurm as a person sees it, from the wizard to its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.hub import eventually
from tests.signing_in import sign_in
from tests.slurm.configuration import GPUS_PER_NODE
from tests.slurm.hub import CLUSTER, PATIENCE_S, SlurmHub
from tests.slurm.people import Person
from tests.slurm.simulated_gpus import show, simulated_gpus

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long, pytest.mark.browser]
PATIENCE_MS = PATIENCE_S * 1000
TRAIN = """
import time
print("here", flush=True)
for step in range(3000):
    print("step", step, flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def gpus(slurm_hub: SlurmHub) -> Iterator[None]:
    with simulated_gpus(slurm_hub.slurm):
        yield


@pytest.fixture
def page(slurm_hub: SlurmHub, browser: Any) -> Iterator[Any]:
    context = browser.new_context(
        base_url=slurm_hub.hub.browser_url,
        viewport={"width": 1440, "height": 900},
        storage_state=sign_in(browser, slurm_hub.hub),
        ignore_https_errors=True,
    )
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def submit_in_wizard(page: Any, folder: Path) -> None:
    """Submits the folder's script with two GPUs to the Slurm. The page is that of the run afterwards."""
    (folder / "train.py").write_text(TRAIN)
    page.goto("/runs/new/")
    page.set_input_files("[data-role=folder]", folder)
    page.wait_for_url("**/source/")
    page.locator(".wz-step", has_text="Resources").click()
    page.check(f"[name=cluster][value={CLUSTER}]")
    offer = page.locator(".wz-option", has=page.locator(f"[value={CLUSTER}]"))
    expect(offer).to_contain_text("partition main of a Slurm · 3 usable nodes · at most 4 GPUs on a node")
    page.fill("#id_gpus_per_node", "2")
    expect(page.locator("#finding-cluster")).to_contain_text("Slurm decides when the run starts")
    expect(page.locator("#finding-timeout")).to_contain_text("Slurm ends the run after 60 minutes")
    page.locator(".wz-step[value=review]").click()
    page.locator(".wz-submit").click()
    page.wait_for_selector("#run-header")


def expect_live_logs(page: Any) -> None:
    page.click("nav a:has-text('Logs')")
    last = page.locator(".log-text").last
    expect(last).to_have_text(re.compile(r"step \d+"), timeout=PATIENCE_MS)
    # More comes without another request for the page.
    line = last.inner_text()
    expect(last).not_to_have_text(line, timeout=PATIENCE_MS)


def expect_live_gpus(page: Any, slurm_hub: SlurmHub) -> None:
    page.click("nav a:has-text('GPUs')")
    temperature = page.locator("figure", has=page.locator(".ch-title:text-is('Temperature')"))
    for celsius in (61, 77):
        show(slurm_hub.slurm, celsius)
        expect(temperature.locator(".ch-read")).to_have_text(f"{celsius} °C", timeout=PATIENCE_MS)
    assert page.locator(".ch-chip", has_text="rank").count() == 2


def cancel_by_button(page: Any) -> None:
    page.click("#run-header button:has-text('Cancel')")
    page.click("dialog button:has-text('Cancel the run')")
    page.wait_for_selector("#run-header .th-pill:has-text('Canceled')")


def test_a_run_waits_in_slurms_terms_shows_logs_and_gpus_and_is_canceled(
    slurm_hub: SlurmHub, gpus: None, page: Any, bo: Person, tmp_path: Path
) -> None:
    nodes = len(slurm_hub.slurm.nodes)
    others = bo.submit(nodes=nodes, gpus_per_node=GPUS_PER_NODE)
    bo.until(others, "RUNNING")
    submit_in_wizard(page, tmp_path)
    expect(page.locator("#run-header")).to_contain_text(
        "is in Slurm's queue. Waits until enough nodes, GPUs, processors or memory are free",
        timeout=PATIENCE_MS,
    )
    # Slurm knows nothing of the shares of workspaces.
    expect(page.locator("#run-header")).not_to_contain_text("share")
    bo.leave()
    page.wait_for_selector("#run-header .th-pill:has-text('Running')")
    expect_live_logs(page)
    expect_live_gpus(page, slurm_hub)
    cancel_by_button(page)
    eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "Slurm has no job of it")
