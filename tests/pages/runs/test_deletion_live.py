"""Deleting on the page of a run, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.browsing import number_of
from tests.runs import submit, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def number(hub: Hub) -> int:
    run = submit(hub, "print('hello')")
    wait_for(hub, run)
    return number_of(hub, run)


def ask_to_delete(page: Any, number: int) -> None:
    page.goto(f"/runs/{number}/events/")
    page.get_by_role("button", name=f"Delete run {number}").click()
    page.locator("dialog").wait_for()


def test_a_deleted_run_comes_back_by_undo(page: Any, number: int) -> None:
    ask_to_delete(page, number)
    page.get_by_role("button", name="Delete the run").click()
    page.wait_for_url("**/runs/")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/runs/{number}/")


def test_a_header_that_is_fetched_anew_behind_the_question_takes_nothing_from_the_answer(
    page: Any, number: int
) -> None:
    ask_to_delete(page, number)
    page.evaluate("document.querySelector('#run-header').replaceChildren()")
    page.get_by_role("button", name="Delete the run").click()
    page.wait_for_url("**/runs/")
