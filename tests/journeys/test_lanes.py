"""Four ranks side by side: one falls silent, one dies; what a person finds, with a real hub and a real
browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.browsing import number_of
from tests.runs import node_folder, submit, wait_for
from tests.violations import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PATIENCE_MS = 60_000
FOUR = {"type": "pytorch", "process_count": 4, "node_count": 1, "communication_backend": "gloo"}
SCRIPT = """
import os, pathlib, sys, time
rank = int(os.environ["RANK"])
print(f"rank {rank} <b>starts</b>", flush=True)
step = 0
while True:
    step += 1
    if rank == 2 and step == 5:
        print("waiting in all_reduce", flush=True)
        time.sleep(3600)
    if rank == 3 and pathlib.Path("die").exists():
        print("Traceback (most recent call last):\\nValueError: \\x1b[31mbatch 7\\x1b[0m is empty",
            flush=True)
        sys.exit(3)
    print(f"step {step} \\x1b[32mloss={1 / step:.3f}\\x1b[0m of rank {rank}", flush=True)
    time.sleep(0.2)
"""


def part(page: Any, name: str) -> Any:
    return page.locator(f'[data-part="{name}"]')


def lane(page: Any, rank: int) -> Any:
    return page.locator(f'.lane[data-rank="{rank}"]')


@pytest.fixture(scope="module")
def run(hub: Hub) -> Iterator[str]:
    made = submit(hub, SCRIPT, distribution=FOUR)
    wait_for(hub, made, "Running")
    yield made
    # Its places are for the tests that follow.
    with hub.client() as client:
        client.post(f"/api/v1/runs/{made}/cancel/")


@pytest.fixture
def opened(page: Any, hub: Hub, run: str) -> Any:
    page.goto(f"/runs/{number_of(hub, run)}/logs/")
    page.wait_for_selector(".lane[data-rank='3']", timeout=PATIENCE_MS)
    return page


def search(page: Any, text: str) -> None:
    part(page, "query").fill(text)
    part(page, "query").press("Enter")
    page.wait_for_selector('[data-part="results"][aria-busy="false"]', timeout=PATIENCE_MS)


class TestWhileItRuns:
    def test_the_rank_that_hangs_stands_out_and_can_be_had_alone(self, opened: Any) -> None:
        opened.wait_for_selector(
            ".lane-stuck[data-rank='2'] .lane-silence:has-text('silent')", timeout=PATIENCE_MS
        )
        assert opened.locator(".lane-stuck").count() == 1
        assert lane(opened, 2).locator(".lane-line").inner_text() == "waiting in all_reduce"
        opened.click("[data-filter=silent]")
        assert opened.locator(".lane[data-rank]:visible").count() == 1
        assert lane(opened, 2).is_visible()
        opened.click("[data-filter=all]")
        opened.select_option("[data-sort]", "silence")
        assert opened.locator(".lane").first.get_attribute("data-rank") == "2"

    def test_lines_and_sizes_move_without_a_reload(self, opened: Any) -> None:
        before = int(lane(opened, 1).get_attribute("data-size"))
        size = "Number(document.querySelector('.lane[data-rank=\"1\"]').dataset.size)"
        wait_until(opened, f"(before) => {size} > before + 200", arg=before)
        assert lane(opened, 1).locator(".lane-line").inner_text().endswith("of rank 1")

    def test_keys_walk_through_the_lanes_and_open_one(self, opened: Any) -> None:
        opened.keyboard.press("j")
        opened.keyboard.press("j")
        opened.keyboard.press("Enter")
        wait_until(opened, "document.querySelector('[data-part=name]').textContent === 'Rank 2'")
        assert lane(opened, 2).get_attribute("aria-current") == "true"

    def test_a_narrow_page_has_them_behind_a_button(self, opened: Any) -> None:
        opened.set_viewport_size({"width": 390, "height": 844})
        assert not lane(opened, 1).is_visible()
        part(opened, "pick").click()
        lane(opened, 1).click()
        assert part(opened, "pick").inner_text().startswith("Rank 1")
        assert not lane(opened, 2).is_visible()


class TestSearch:
    def test_finds_lines_of_all_ranks_and_jumps_to_one(self, opened: Any) -> None:
        search(opened, "STARTS")
        assert part(opened, "told").inner_text() == "4 lines in 4 of 4 logs"
        assert sorted(opened.locator(".hit-text").all_inner_texts()) == [
            f"rank {rank} <b>starts</b>" for rank in range(4)
        ]
        assert set(opened.locator(".hit-text mark").all_inner_texts()) == {"starts"}
        opened.locator(".hit", has_text="rank 2").click()
        opened.wait_for_selector(".log-current")
        assert opened.locator(".log-current .log-text").inner_text() == "rank 2 <b>starts</b>"
        assert part(opened, "name").inner_text() == "Rank 2"
        assert opened.url.endswith("?log=70_driver_log_2.txt#b=0")

    def test_by_rank_stands_under_a_heading_for_each(self, opened: Any) -> None:
        search(opened, "step 1 ")
        opened.click("[data-order=rank]")
        headings = opened.locator(".log-hits .lane-heading")
        wait_until(opened, "document.querySelectorAll('.log-hits .lane-heading').length === 4")
        assert [text.split("\n")[0] for text in headings.all_inner_texts()] == [
            f"Rank {rank}" for rank in range(4)
        ]

    def test_an_expression_that_is_not_taken_and_words_that_are_nowhere_say_so(self, opened: Any) -> None:
        opened.keyboard.press("F")
        assert opened.evaluate("document.activeElement.dataset.part") == "query"
        opened.click("[data-option=regex]")
        search(opened, "(?=starts)")
        assert "cannot be used as an expression (invalid perl operator" in part(opened, "more").inner_text()
        opened.click("[data-option=regex]")
        search(opened, "nobody says this")
        assert "No line in the 4 logs contains “nobody says this”" in part(opened, "more").inner_text()
        part(opened, "query").press("Escape")
        assert lane(opened, 0).is_visible()


class TestAtTheEnd:
    def test_the_first_traceback_of_all_ranks_is_one_key_away(self, opened: Any, hub: Hub, run: str) -> None:
        (node_folder(hub, run) / "work" / "die").touch()
        wait_for(hub, run, "Failed")
        opened.wait_for_selector(".lane[data-rank='3'][data-state=Failed]", timeout=PATIENCE_MS)
        assert "Failed · exit 3" in lane(opened, 3).inner_text()
        # The lanes of the other ranks may follow with a later message.
        opened.wait_for_selector(".lane[data-rank='0']:has-text('Stopped')", timeout=PATIENCE_MS)
        assert opened.locator(".lanes[data-failed]").count() == 1
        opened.click("[data-filter=failed]")
        assert opened.locator(".lane[data-rank]:visible").count() == 1
        opened.keyboard.press("T")
        opened.wait_for_selector(".log-current")
        assert opened.locator(".log-current .log-text").inner_text() == "Traceback (most recent call last):"
        assert part(opened, "name").inner_text() == "Rank 3"
