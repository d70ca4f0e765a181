"""How many clicks the first things need that people do, counted from the dashboard after signing in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import begin
from tests.runs import submit, wait_for
from tests.signing_in import sign_in
from tests.simulator.test_demo import Demo, processes_inside
from trainhub.demo.story import PAST

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PATIENCE_MS = 60_000
LEAVES_MODEL = "import pathlib; pathlib.Path('outputs/model.json').write_text('{}')\n"


class Clicks:
    """Counts the clicks on a page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.count = 0

    def on(self, selector: str, **options: Any) -> None:
        self.page.click(selector, timeout=PATIENCE_MS, **options)
        self.count += 1

    def choose(self, selector: str, folder: Path) -> None:
        self.page.set_input_files(selector, folder)
        self.count += 1


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = Demo(tmp_path_factory.mktemp("demo") / "data")
    try:
        made.start()
        yield made
        assert made.stop() == 0
        assert processes_inside(made.data_dir) == []
    finally:
        made.stop()


@pytest.fixture(scope="module")
def signed_in_to_demo(browser: Any, demo: Demo) -> Any:
    return sign_in(browser, demo)


@pytest.fixture
def clicks(demo: Demo, browser: Any, signed_in_to_demo: Any) -> Iterator[Clicks]:
    """On the dashboard of the demo, signed in."""
    context = browser.new_context(base_url=demo.browser_url, storage_state=signed_in_to_demo)
    page = context.new_page()
    page.goto("/")
    yield Clicks(page)
    context.close()


def completes(page: Any) -> None:
    page.wait_for_selector("#run-header .th-pill:has-text('Completed')", timeout=PATIENCE_MS)


def assert_compares_three(clicks: Clicks) -> None:
    clicks.page.wait_for_url("**/compare/?runs=*")
    assert clicks.page.locator("h1:has-text('Compare')").is_visible()
    assert len(re.findall(r"\d+", clicks.page.url.partition("runs=")[2].replace("%2C", ","))) == 3
    assert clicks.count == 4


class CommonTasks:
    """What takes the same clicks in the demo and on a hub that somebody has started on their machine."""

    def test_the_own_folder_runs_after_four(self, clicks: Clicks, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "train.py").write_text("print('mine')\n")
        clicks.on(".th-rail a:has-text('New run')")
        clicks.choose("input[webkitdirectory]", tmp_path / "mine")
        clicks.on(".wz-step[value=review]")
        clicks.on(".wz-submit")
        completes(clicks.page)
        assert clicks.count == 4

    def test_a_machine_is_added_after_four(self, clicks: Clicks) -> None:
        clicks.on(".th-rail a:has-text('Clusters')")
        clicks.on("a:has-text('Add a machine') >> nth=0")
        clicks.on("button:has-text('Create the command')")
        clicks.on("button:has-text('Copy')")
        clicks.page.wait_for_selector("[data-command]")
        assert "trainhub-node" in clicks.page.locator("[data-command]").inner_text()
        assert clicks.count == 4

    def test_an_api_token_is_made_after_two_and_its_name(self, clicks: Clicks, place: Hub) -> None:
        clicks.on(".th-rail a:has-text('Settings')")
        clicks.page.fill("#tokens [name=name]", "laptop")
        clicks.on("button:has-text('Create token')")
        token = clicks.page.locator("[data-new-token]").inner_text().split()[0]
        with place.client(token) as client:
            assert client.get("/api/v1/runs/").status_code == httpx.codes.OK
        assert clicks.count == 2


# The demo takes a minute to start, and tests/simulator/test_demo.py starts it as well.
@pytest.mark.long
class TestDemo(CommonTasks):
    @pytest.fixture
    def place(self, demo: Demo) -> Hub:
        return demo

    def test_an_example_runs_after_two(self, clicks: Clicks) -> None:
        clicks.on(".th-try button")
        clicks.on(".wz-submit")
        completes(clicks.page)
        assert clicks.count == 2

    def test_three_runs_are_compared_after_four(self, clicks: Clicks) -> None:
        clicks.page.goto("/")
        clicks.on(".th-rail a:has-text('Runs')")
        rows = "tr:has-text('seed {seed}'):has-text('same again') input[name=run]"
        clicks.on(rows.format(seed=4))
        clicks.on(rows.format(seed=2), modifiers=["Shift"])
        clicks.on("#bulk >> text=Compare")
        assert_compares_three(clicks)

    def test_a_model_is_registered_after_three(self, clicks: Clicks) -> None:
        clicks.on(f"a[href='/runs/{len(PAST)}/']")
        clicks.on("a:has-text('Register')")
        clicks.on("button:has-text('Register')")
        clicks.page.wait_for_url("**/models/seeds/**")
        assert clicks.count == 3

    def test_the_cause_of_a_failure_is_read_after_one(self, clicks: Clicks) -> None:
        failed = "table tr:has-text('CUDA out of memory') a"
        eventually(lambda: clicks.page.locator(failed).count(), 60, "the visitor's run fails")
        clicks.on(f"{failed} >> nth=0")
        cause = clicks.page.locator(".th-cause")
        cause.wait_for(timeout=PATIENCE_MS)
        assert "What to do" in cause.inner_text()
        assert clicks.count == 1

    def test_an_idle_gpu_is_seen_without_any(self, clicks: Clicks) -> None:
        # The label of a machine whose GPU has had an uncorrectable error goes on: "…, 1 unhealthy".
        assert clicks.page.locator("[aria-label*='GPUs busy']").count() == 6


class TestUp(CommonTasks):
    """On a hub that has runs. An empty one offers the first example on its dashboard, with one click less
    (tests/pages/test_lists.py)."""

    @pytest.fixture
    def place(self, hub: Hub) -> Hub:
        return hub

    @pytest.fixture
    def clicks(self, confirmed_page: Any) -> Clicks:
        return Clicks(confirmed_page)

    def test_an_example_runs_after_three(self, clicks: Clicks) -> None:
        clicks.on(".th-rail a:has-text('New run')")
        clicks.on(".wz-card:has-text('Hello')")
        clicks.on(".wz-submit")
        completes(clicks.page)
        assert clicks.count == 3

    def test_three_runs_are_compared_after_four(self, clicks: Clicks, hub: Hub) -> None:
        runs = [begin(hub, f"compared {number}") for number in range(3)]
        for run in runs:
            run.log("loss", [1.0, 0.5])
            run.end()
        clicks.on(".th-rail a:has-text('Runs')")
        clicks.on(f"input[name=run][aria-label*='{runs[2].number}']")
        clicks.on(f"input[name=run][aria-label*='{runs[0].number}']", modifiers=["Shift"])
        clicks.on("#bulk >> text=Compare")
        assert_compares_three(clicks)

    def test_a_model_is_registered_after_three(self, clicks: Clicks, hub: Hub) -> None:
        number = wait_for(hub, submit(hub, LEAVES_MODEL, experiment="clicks"), "Completed")["number"]
        clicks.page.goto("/")
        clicks.on(f"#run-{number} a")
        clicks.on("a:has-text('Register')")
        clicks.on("button:has-text('Register')")
        clicks.page.wait_for_url("**/models/clicks/**")
        assert clicks.count == 3

    def test_the_cause_of_a_failure_is_read_after_one(self, clicks: Clicks, hub: Hub) -> None:
        number = wait_for(hub, submit(hub, "import nowhere_at_all\n"), "Failed")["number"]
        clicks.page.goto("/")
        clicks.on(f"#run-{number} a")
        cause = clicks.page.locator(".th-cause")
        cause.wait_for(timeout=PATIENCE_MS)
        assert "nowhere_at_all" in cause.inner_text()
        assert "What to do" in cause.inner_text()
        assert clicks.count == 1

    def test_an_idle_machine_is_seen_without_any(self, clicks: Clicks) -> None:
        assert clicks.page.locator(".th-machine [aria-label*=' busy']").count() >= 1
