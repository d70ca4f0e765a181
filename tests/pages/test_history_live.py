"""The table of runs in a browser, while runs change and rows are used."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.hub import Hub
from tests.pages.logged_runs import MLFLOW, asked, log, names
from tests.violations import wait_until

pytestmark = pytest.mark.browser
EXPERIMENT = "live-history"
HERE = f"/runs/?experiment={EXPERIMENT}"


@pytest.fixture(scope="module", autouse=True)
def _logged(hub: Hub) -> None:
    with hub.client() as client:
        experiment = asked(client, "experiments/create", name=EXPERIMENT)["experiment_id"]
        for name, acc in (("sgd-0", 0.5), ("sgd-1", 0.7)):
            log(client, experiment, name, {"val_acc": acc}, {"opt": "sgd"})


def _body_of(response: Any) -> list[bytes]:
    return [response.body()] if "/runs/" in response.url and response.status == 200 else []


class TestLive:
    def test_a_run_that_begins_appears_and_what_is_chosen_stays(self, page: Any, hub: Hub) -> None:
        page.goto(f"{HERE}&filter={quote('metrics.val_acc > 0.6')}")
        page.locator("tr:has-text('sgd-1') input[name=run]").check()
        with hub.client() as client:
            experiment = client.get(
                f"{MLFLOW}/experiments/get-by-name", params={"experiment_name": EXPERIMENT}
            ).json()
            log(client, experiment["experiment"]["experiment_id"], "newest", {"val_acc": 0.99}, {})
        page.wait_for_selector("#run-rows >> text=newest")
        assert page.locator("tr:has-text('sgd-1') input[name=run]").is_checked()
        assert page.inner_text("#bulk strong") == "1 selected"

    def test_a_refresh_fetches_the_rows_that_have_changed_and_not_the_table(
        self, page: Any, hub: Hub
    ) -> None:
        with hub.client() as client:
            experiment = asked(client, "experiments/create", name="many-rows")["experiment_id"]
            runs = [log(client, experiment, f"row-{n}", {"acc": n / 40}, {}) for n in range(40)]
            bodies: list[bytes] = []
            page.goto("/runs/?experiment=many-rows")
            wait_until(page, "document.querySelectorAll('#run-rows tbody tr').length === 40")
            table_bytes = page.evaluate("document.querySelector('#run-rows').innerHTML.length")
            page.on("response", lambda response: bodies.extend(_body_of(response)))
            page.hover("tr:has-text('row-20')")
            page.focus("tr:has-text('row-20') .th-name-line a")
            for round_number in range(8):
                call = client.delete if round_number % 2 else client.put
                call(f"/api/v1/runs/{runs[20]}/pin/").raise_for_status()
                page.wait_for_selector(
                    "tr:has-text('row-20') .th-mark", state="detached" if round_number % 2 else "attached"
                )
            # The mark is on the page before the browser has told this process of the answer.
            for _ in range(100):
                if len(bodies) >= 8:
                    break
                page.wait_for_timeout(100)
            assert len(bodies) >= 8
            assert max(map(len, bodies)) < 3_000
            assert sum(map(len, bodies)) < table_bytes / 2
            # The row was replaced eight times, and is still in use.
            assert page.evaluate("document.activeElement.textContent") == "row-20"
            assert page.locator("tr:has-text('row-20') .th-row-actions button").count() > 0
            for call_name in ("delete", "restore"):
                asked(client, f"runs/{call_name}", run_id=runs[39])
                page.wait_for_selector(
                    "tr:has-text('row-39')", state="detached" if call_name == "delete" else "attached"
                )
        assert names(page)[:2] == ["row-39", "row-38"]

    def test_the_keyboard_reaches_the_actions_of_a_row(self, page: Any) -> None:
        page.goto(HERE)
        page.locator("tr:has-text('sgd-1') input[name=run]").focus()
        page.wait_for_selector("tr:has-text('sgd-1') .th-row-actions button", state="attached")
        reached = []
        for _ in range(9):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent")
            )
        number = page.locator("tr:has-text('sgd-1') input[name=run]").get_attribute("value")
        assert f"Star of run {number}" in reached
        assert "Only runs with metrics.val_acc >= 0.7" in reached
        assert f"Delete run {number}" in reached

    def test_a_filter_that_changes_twice_at_once_writes_no_error(self, page: Any) -> None:
        errors: list[str] = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(HERE)
        page.wait_for_load_state("networkidle")
        page.evaluate("""() => {
            for (const value of ["failed", "completed", "running", "completed"]) {
                const field = document.querySelector("select[name=state]");
                field.value = value;
                field.dispatchEvent(new Event("change", { bubbles: true }));
            }
        }""")
        wait_until(page, "location.search.includes('state=completed')")
        page.wait_for_selector("#run-rows >> text=sgd-1")
        assert errors == []
