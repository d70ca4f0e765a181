"""The log viewer and the live pages, with a real hub, real runs and a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.browsing import number_of
from tests.runs import submit, wait_for
from tests.violations import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MANY = 500_000
PATIENCE_MS = 60_000
MAX_ROWS = 200
"""DOM rows at any moment, however long the log."""
FLOOD = f"""
import sys
for start in range(0, {MANY}, 1000):
    numbers = range(start, start + 1000)
    sys.stdout.write("".join(f"line {{number}} \\x1b[32mloss=0.5\\x1b[0m\\n" for number in numbers))
    if start == 300_000:
        sys.stdout.write("Traceback (most recent call last):\\n")
"""
TALK = """
import pathlib, sys, time
go = pathlib.Path("go")
for number in range(100):
    print(f"talk {number}", flush=True)
print("waiting", flush=True)
while not go.exists():
    time.sleep(0.02)
for number in range(50):
    print(f"more {number}", flush=True)
print("\\r 10%\\r100%\\x1b[K done", flush=True)
sys.stdout.buffer.write(b"not utf-8 \\xff\\n")
"""
EIGHT = {"type": "pytorch", "process_count": 8, "node_count": 1, "communication_backend": "gloo"}
FAILS = "print('step 1')\ndef boom():\n    raise ValueError('no batch left')\nboom()\n"


def part(page: Any, name: str) -> Any:
    return page.locator(f'[data-part="{name}"]')


def rows(page: Any) -> list[str]:
    return list(page.locator(".log-text").all_text_contents())


def until_says(page: Any, name: str, text: str) -> None:
    wait_until(
        page,
        "([name, text]) => document.querySelector(`[data-part=${name}]`).textContent.includes(text)",
        arg=[name, text],
        timeout=PATIENCE_MS,
    )


def until_last(page: Any, text: str) -> None:
    """Until the lowest row says `text`."""
    last = "[...document.querySelectorAll('.log-text')].at(-1)?.textContent"
    wait_until(page, f"(text) => {last} === text", arg=text, timeout=PATIENCE_MS)


def scroll(page: Any, share: float) -> None:
    """To this share of the log, and one frame further."""
    page.evaluate(
        "async (share) => { const box = document.querySelector('.log-scroller'); box.scrollTop = "
        "box.scrollHeight * share;"
        " await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); }",
        share,
    )


@pytest.fixture(scope="module")
def flood(hub: Hub) -> str:
    run = submit(hub, FLOOD)
    assert wait_for(hub, run, seconds=120)["state"] == "Completed"
    return run


class TestHalfAMillionLines:
    @pytest.fixture
    def page(self, page: Any, hub: Hub, flood: str) -> Any:
        page.goto(f"/runs/{number_of(hub, flood)}/logs/")
        until_says(page, "state", f"{MANY + 1:,} lines")
        return page

    def test_only_what_is_seen_is_in_the_page_wherever_one_scrolls(self, page: Any) -> None:
        until_last(page, f"line {MANY - 1} loss=0.5")  # a finished log opens at its end
        for share in (0, 0.25, 0.5, 0.75, 1):
            scroll(page, share)
            assert 10 < len(rows(page)) < MAX_ROWS
        scroll(page, 0)
        assert rows(page)[0] == "line 0 loss=0.5"

    def test_the_first_traceback_is_one_click_away(self, page: Any) -> None:
        part(page, "traceback").click()
        page.wait_for_selector(".log-current")
        assert page.locator(".log-current .log-number").inner_text() == "301001"

    def test_find_counts_and_walks_through_the_hits(self, page: Any) -> None:
        part(page, "find").fill("LINE 49999")
        until_says(page, "found", "11 lines")
        scroll(page, 0)
        part(page, "find").press("Enter")
        assert page.locator(".log-current .log-text").inner_text() == "line 49999 loss=0.5"
        part(page, "find").press("Enter")
        assert page.locator(".log-current .log-text").inner_text() == "line 499990 loss=0.5"
        part(page, "find").press("Shift+Enter")
        assert part(page, "found").inner_text() == "1 of 11"
        assert page.locator(".log-current mark").inner_text() == "line 49999"

    def test_wrapping_keeps_the_bound_and_the_end(self, page: Any) -> None:
        part(page, "wrap").click()
        scroll(page, 0.5)
        assert len(rows(page)) < MAX_ROWS
        part(page, "follow").click()
        until_last(page, f"line {MANY - 1} loss=0.5")
        part(page, "wrap").click()

    def test_the_download_is_the_whole_log(self, page: Any) -> None:
        with page.expect_download() as download:
            part(page, "download").click()
        lines = [f"line {number} \x1b[32mloss=0.5\x1b[0m" for number in range(MANY)]
        lines.insert(301_000, "Traceback (most recent call last):")
        assert Path(download.value.path()).read_text() == "\n".join((*lines, ""))


class TestLive:
    def test_follows_pauses_and_follows_again_without_losing_a_line(self, page: Any, hub: Hub) -> None:
        run = submit(hub, TALK)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        until_last(page, "waiting")
        page.locator(".log-scroller").hover()
        page.mouse.wheel(0, -600)
        page.wait_for_selector("[data-part=follow][aria-pressed=false]")
        work = next(hub.data_dir.rglob(f"{run}-1/work"))
        (work / "go").touch()
        until_says(page, "paused", "52 new lines")
        part(page, "paused").click()
        until_last(page, "not utf-8 \ufffd")
        assert "100% done" in rows(page)
        assert part(page, "paused").is_hidden()

    def test_follows_although_the_browser_falls_back_to_where_it_was(self, page: Any, hub: Hub) -> None:
        """As Chromium does on a busy machine when many lines come at once."""
        run = submit(hub, TALK)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        until_last(page, "waiting")
        page.evaluate(
            """() => {
              const box = document.querySelector('.log-scroller'), before = box.scrollTop;
              const fallBack = () => {
                if (box.scrollTop <= before) return requestAnimationFrame(fallBack);
                box.scrollTop = before;
                box.dispatchEvent(new Event('scroll'));
                window.fellBack = true;
              };
              fallBack();
            }"""
        )
        (next(hub.data_dir.rglob(f"{run}-1/work")) / "go").touch()
        wait_until(page, "window.fellBack === true", timeout=PATIENCE_MS)
        until_last(page, "not utf-8 \ufffd")
        assert part(page, "paused").is_hidden()

    def test_a_page_opened_while_the_run_waits_shows_its_log_once_it_runs(self, page: Any, hub: Hub) -> None:
        blocker = submit(hub, "import time; time.sleep(600)", distribution=EIGHT)
        wait_for(hub, blocker, "Running")
        run = submit(hub, "print('my turn')", distribution=EIGHT)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        page.wait_for_selector("#run-header :text('Waiting for 1 node')", timeout=PATIENCE_MS)
        assert "The ranks appear here" in page.locator(".log-lanes").inner_text()
        with hub.client() as client:
            client.post(f"/api/v1/runs/{blocker}/cancel/").raise_for_status()
        until_last(page, "my turn")
        assert page.locator(".lane").count() == 8
        page.wait_for_selector("#count-members:has-text('8')", state="attached")

    def test_the_header_moves_by_itself_to_the_end(self, page: Any, hub: Hub) -> None:
        run = submit(hub, TALK)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        page.wait_for_selector("#run-header .th-pill:has-text('Running')", timeout=PATIENCE_MS)
        (next(hub.data_dir.rglob(f"{run}-1/work")) / "go").touch()
        page.wait_for_selector("#run-header .th-pill:has-text('Completed')", timeout=PATIENCE_MS)
        until_says(page, "state", "complete")

    def test_the_header_is_refreshed_once_htmx_is_ready(self, page: Any, hub: Hub) -> None:
        """The socket opens before a late script lets htmx start, and nothing else happens to the run."""
        run = submit(hub, TALK)
        wait_for(hub, run, "Running")

        def answer_late(route: Any) -> None:
            page.wait_for_timeout(1500)
            route.continue_()

        page.route("**/log-view.js", answer_late, times=1)
        with page.expect_request("**/header/", timeout=10_000):
            page.goto(f"/runs/{number_of(hub, run)}/logs/")
        (next(hub.data_dir.rglob(f"{run}-1/work")) / "go").touch()
        wait_for(hub, run, "Completed")

    def test_a_page_that_lost_its_hub_catches_up(self, page: Any, hub: Hub) -> None:
        run = submit(hub, TALK)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        until_last(page, "waiting")
        hub.kill("web", wait=False)
        (next(hub.data_dir.rglob(f"{run}-1/work")) / "go").touch()
        eventually(hub.answers, 60, "the hub answers again")
        until_last(page, "not utf-8 \ufffd")
        page.wait_for_selector("#run-header .th-pill:has-text('Completed')", timeout=PATIENCE_MS)

    def test_what_a_proxy_could_not_fetch_is_fetched_again(self, page: Any, hub: Hub) -> None:
        """One of several servers has died, and the socket is at another, which says nothing more."""
        run = submit(hub, TALK)
        page.goto(f"/runs/{number_of(hub, run)}/logs/")
        until_last(page, "waiting")
        page.wait_for_selector("#run-header .th-pill:has-text('Running')", timeout=PATIENCE_MS)
        page.wait_for_load_state("networkidle")
        refused: set[str] = set()

        def refuse(route: Any) -> None:
            """Until the run is over, whatever the page asks for."""
            refused.add(route.request.url.partition("?")[0].rstrip("/").rpartition("/")[2])
            route.fulfill(status=502, body="Bad Gateway")

        parts = ("**/header/", "**/lanes/**")
        for part_of_page in parts:
            page.route(part_of_page, refuse)
        (next(hub.data_dir.rglob(f"{run}-1/work")) / "go").touch()
        wait_for(hub, run, "Completed")
        while not {"header", "lanes"} <= refused:
            page.wait_for_timeout(100)
        page.wait_for_timeout(2000)  # the last messages of the run have come
        for part_of_page in parts:
            page.unroute(part_of_page)
        page.wait_for_selector("#run-header .th-pill:has-text('Completed')", timeout=PATIENCE_MS)
        page.wait_for_selector(".lane[data-state=Succeeded]", state="attached", timeout=PATIENCE_MS)

    def test_a_log_that_cannot_be_fetched_is_not_called_empty(self, page: Any, hub: Hub, flood: str) -> None:
        def refuse(route: Any) -> None:
            route.fulfill(status=503, json={"detail": "The store is away."})

        page.route("**/logs/*.txt?*", refuse)
        page.goto(f"/runs/{number_of(hub, flood)}/logs/")
        until_says(page, "error", "The log could not be fetched: The store is away. Trying again.")
        assert part(page, "nothing").is_hidden()
        assert part(page, "state").text_content() == ""
        page.unroute("**/logs/*.txt?*")
        until_says(page, "state", f"{MANY + 1:,} lines")
        assert part(page, "error").is_hidden()

    def test_a_failed_run_leads_to_the_line_of_its_traceback(self, page: Any, hub: Hub) -> None:
        run = submit(hub, FAILS)
        wait_for(hub, run, "Failed")
        page.goto(f"/runs/{number_of(hub, run)}/events/")
        assert page.locator(".th-cause h2").inner_text() == "ValueError: no batch left"
        page.click(".th-cause a")
        page.wait_for_selector(".log-current")
        assert page.locator(".log-current").inner_text().split("\n") == [
            "2",
            "Traceback (most recent call last):",
        ]

    def test_the_run_list_shows_a_new_run_without_a_reload(self, page: Any, hub: Hub) -> None:
        page.goto("/runs/")
        run = submit(hub, "print('hello')", display_name="comes by itself")
        page.wait_for_selector(
            f"#run-{number_of(hub, run)} .th-pill:has-text('Completed')", timeout=PATIENCE_MS
        )
