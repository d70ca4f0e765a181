"""The run table in a browser, over runs that a client has logged into a real hub."""

from __future__ import annotations

import re
import statistics
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.hub import Hub
from tests.pages.logged_runs import MLFLOW, asked, log, names
from tests.violations import wait_until

pytestmark = pytest.mark.browser
EXPERIMENT = "history-in-a-browser"
ACCS = {"adam": [0.91, 0.93, 0.95], "sgd": [0.5, 0.7]}
HERE = f"/runs/?experiment={EXPERIMENT}"


@pytest.fixture(scope="module", autouse=True)
def _logged(hub: Hub) -> None:
    with hub.client() as client:
        experiment = asked(client, "experiments/create", name=EXPERIMENT)["experiment_id"]
        for optimizer, accs in ACCS.items():
            for seed, acc in enumerate(accs):
                log(
                    client,
                    experiment,
                    f"{optimizer}-{seed}",
                    {"val_acc": acc},
                    {"opt": optimizer, "seed": str(seed)},
                )


def wait_for_names(page: Any, *wanted: str) -> None:
    shown = "[...document.querySelectorAll('#run-rows tbody .th-name-line > a')].map(a => a.innerText).join()"
    wait_until(page, f"wanted => {shown} === wanted", arg=",".join(wanted))


class TestFilterBar:
    def test_completes_keys_operators_and_values_by_keyboard(self, page: Any) -> None:
        page.goto(HERE)
        page.locator("#filter").press_sequentially("params.op")
        page.wait_for_selector("#filter-offers li >> text=params.opt")
        page.keyboard.press("Tab")
        wait_until(page, "document.querySelector('#filter').value === 'params.opt '")
        page.wait_for_selector("#filter-offers li >> text=LIKE")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.input_value("#filter") == "params.opt = "
        page.wait_for_selector("#filter-offers li:has-text(\"'sgd'\")")
        page.keyboard.type("'s")
        wait_until(page, "document.querySelectorAll('#filter-offers li').length === 1")
        page.keyboard.press("Tab")
        wait_until(page, "document.querySelector('#filter').value.endsWith(`'sgd' `)")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        wait_for_names(page, "sgd-1", "sgd-0")
        assert parse_qs(urlsplit(page.url).query)["filter"] == ["params.opt = 'sgd'"]

    def test_underlines_what_is_wrong_and_keeps_what_was_found(self, page: Any) -> None:
        page.goto(HERE)
        before = names(page)
        page.fill("#filter", "metrics.val_acc > 0.5 AND params.opt = adam")
        page.click("button:has-text('Filter')")
        page.wait_for_selector("#filter-error u")
        assert page.inner_text("#filter-error u") == "adam"
        assert "(at character 40)" in page.inner_text("#filter-error")
        assert "in quotes: 'adam'" in page.inner_text("#filter-error")
        assert names(page) == before
        page.fill("#filter", "metrics.val_acc > 0.94")
        page.press("#filter", "Enter")
        wait_for_names(page, "adam-2")
        assert page.locator("#filter-error u").count() == 0

    def test_one_click_on_a_cell_narrows_and_one_on_a_head_orders(self, page: Any) -> None:
        page.goto(f"{HERE}&column=params.opt&column=metrics.val_acc")
        page.click("th a:has-text('val_acc')")
        wait_for_names(page, "adam-2", "adam-1", "adam-0", "sgd-1", "sgd-0")
        cell = page.locator("tr:has-text('sgd-1') td", has_text="sgd").last
        cell.hover()
        cell.locator(".th-narrow").click()
        wait_for_names(page, "sgd-1", "sgd-0")
        assert page.input_value("#filter") == "params.opt = 'sgd'"


class TestGroups:
    def test_show_mean_and_spread_over_the_seeds_and_unfold(self, page: Any) -> None:
        page.goto(HERE)
        page.click("summary:has-text('Group')")
        page.check("input[name=group][value='params.opt']")
        page.click(".th-picker button:has-text('Group')")
        page.wait_for_selector("tr.th-group")
        shown = dict(zip(page.locator("tr.th-group .th-name").all_inner_texts(), groups(page), strict=True))
        assert shown == {
            name: f"{statistics.mean(accs):.{digits}f} ± {statistics.stdev(accs):.{digits}f}"
            for (name, accs), digits in zip(ACCS.items(), (3, 2), strict=True)
        }
        row = page.locator("tr.th-group", has_text="sgd")
        row.locator("[data-unfold]").click()
        page.wait_for_selector("tr.th-part")
        assert sorted(page.locator("tr.th-part .th-name-line > a").all_inner_texts()) == ["sgd-0", "sgd-1"]
        row.locator("[data-unfold]").click()
        assert page.locator("tr.th-part").count() == 0


def groups(page: Any) -> list[str]:
    heads = [text.strip() for text in page.locator("thead th").all_inner_texts()]
    cells = page.locator(f"tr.th-group td:nth-child({heads.index('val_acc') + 1})")
    return [text.strip() for text in cells.all_inner_texts()]


class TestColumnsAndViews:
    def test_a_saved_view_is_a_link_that_shows_the_same(self, page: Any) -> None:
        page.goto(f"{HERE}&filter={quote('metrics.val_acc > 0.6')}")
        page.click("summary:has-text('Columns')")
        page.fill(".th-picker [data-find]", "seed")
        page.locator(".th-picker-list label:has(input[value='params.opt'])").wait_for(state="hidden")
        # Runs of other tests on this hub may have logged another key of that kind.
        assert all(
            "seed" in label.lower()
            for label in page.locator(".th-picker-list label:visible").all_inner_texts()
        )
        page.check("input[value='params.seed']")
        page.click("button:has-text('Show columns')")
        page.wait_for_selector("thead th:has-text('seed')")
        page.click("summary:has-text('Views')")
        page.fill("#view-name", "good seeds")
        page.check("input[name=shared]")
        page.click(".th-save-view button")
        page.wait_for_selector(".th-messages >> text=good seeds is saved")
        page.goto("/runs/")
        page.click("summary:has-text('Views')")
        page.click(".th-saved-view a:has-text('good seeds')")
        page.wait_for_selector("thead th:has-text('seed')")
        assert page.input_value("#filter") == "metrics.val_acc > 0.6"
        assert names(page) == ["sgd-1", "adam-2", "adam-1", "adam-0"]

    def test_a_menu_opened_before_the_scripts_have_loaded_is_filled(self, page: Any) -> None:
        def answer_late(route: Any) -> None:
            page.click("summary:has-text('Views')")
            route.continue_()

        page.route("**/htmx-*.js", answer_late, times=1)
        page.goto("/runs/")
        page.wait_for_selector("#view-name")


class TestChosen:
    def test_go_to_compare_by_their_numbers(self, page: Any) -> None:
        page.goto(HERE)
        for name in ("sgd-1", "adam-2"):
            page.locator(f"tr:has-text('{name}') input[name=run]").check()
        assert page.inner_text("#bulk strong") == "2 selected"
        page.click("#bulk >> text=Compare")
        page.wait_for_url("**/compare/?runs=*")
        assert re.fullmatch(r"runs=\d+(,|%2C)\d+", urlsplit(page.url).query.split("&")[0])

    def test_stay_chosen_when_the_only_row_of_another_page_is_unticked(self, page: Any) -> None:
        page.goto(HERE)
        page.locator("tr:has-text('sgd-1') input[name=run]").check()
        page.fill("#filter", "metrics.val_acc = 0.91")
        page.press("#filter", "Enter")
        wait_for_names(page, "adam-0")
        only = page.locator("tr:has-text('adam-0') input[name=run]")
        only.check()
        assert page.inner_text("#bulk strong") == "2 selected"
        only.uncheck()
        assert page.inner_text("#bulk strong") == "1 selected"

    def test_by_keyboard_they_are_tagged_and_told_of(self, page: Any) -> None:
        page.goto(f"{HERE}&column=tags.team")
        page.locator("h1").click()
        for key in ("j", "x", "j", "x"):
            page.keyboard.press(key)
        assert page.inner_text("#bulk strong") == "2 selected"
        page.click("#bulk summary")
        page.fill("#bulk input[name=key]", "team")
        page.fill("#bulk input[name=value]", "vision")
        page.press("#bulk input[name=value]", "Enter")
        page.wait_for_selector(".th-messages >> text=are tagged")
        wait_until(page, "document.querySelectorAll('#run-rows .th-value').length >= 2")
        assert page.locator("#run-rows .th-value", has_text="vision").count() == 2

    def test_archiving_asks_nothing_and_deleting_does(self, page: Any, hub: Hub) -> None:
        with hub.client() as client:
            experiment = client.get(
                f"{MLFLOW}/experiments/get-by-name", params={"experiment_name": EXPERIMENT}
            ).json()
            log(client, experiment["experiment"]["experiment_id"], "gone", {"val_acc": 0.1}, {})
        page.goto(HERE)
        page.locator("tr:has-text('gone') input[name=run]").check()
        page.click("#bulk >> text=Delete")
        page.click("dialog >> text=Delete them")
        page.wait_for_selector(".th-messages >> text=can be restored")
        assert "gone" not in names(page)
        page.goto(f"{HERE}&view=deleted")
        assert names(page) == ["gone"]
        page.locator("tr:has-text('gone') input[name=run]").check()
        page.click("#bulk >> text=Restore")
        page.wait_for_selector(".th-messages >> text=restored")


class TestPhone:
    def test_shows_state_name_and_the_main_metric(self, page: Any) -> None:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(HERE)
        visible = [text.strip() for text in page.locator("thead th:visible").all_inner_texts()]
        assert [text for text in visible if text] == ["State", "Name", "val_acc"]
        assert page.evaluate("document.documentElement.scrollWidth <= 390")
