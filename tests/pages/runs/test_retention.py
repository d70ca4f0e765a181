"""The page of retention rules in a browser: preview, confirm, cancel; and what the page of a run says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.browsing import number_of
from tests.runs import submit, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]
AGE = """
from datetime import timedelta
from django.utils import timezone
from jobs.models import Run
past = timezone.now() - timedelta(days=40)
Run.objects.filter(pk="{run}").update(created_at=past, finished_at=past)
"""
REMOVE = """
from datetime import timedelta
from django.utils import timezone
from jobs.models import RuleInForce
from jobs.retention_rules import removal_round
RuleInForce.objects.exclude(next_at=None).update(next_at=timezone.now())
print(removal_round.remove_due(timezone.now() + timedelta(seconds=1)))
"""


@pytest.fixture
def number(hub: Hub) -> int:
    run = submit(hub, "print('hello')")
    wait_for(hub, run)
    hub.manage("shell", "-c", AGE.format(run=run))
    return number_of(hub, run)


def choose_logs(page: Any, days: str) -> None:
    page.goto("/settings/")
    page.locator("#retention").get_by_role("link", name="Rules").click()
    page.get_by_label("Logs: What happens").select_option("remove")
    page.get_by_label("Logs: Days after the end of a run").fill(days)
    page.get_by_role("button", name="Preview").click()


def test_nothing_goes_before_it_was_shown_and_confirmed(page: Any, hub: Hub, number: int) -> None:
    choose_logs(page, "")
    assert page.get_by_role("alert").inner_text() == "Enter a number of days."
    choose_logs(page, "30")
    page.get_by_text("Logs: which runs").click()
    page.get_by_role("link", name=str(number), exact=True).wait_for()
    page.get_by_role("button", name="Confirm and save").click()
    page.get_by_text("Stricter rules wait").wait_for()
    page.get_by_role("button", name="Cancel them").click()
    page.get_by_text("are canceled. Nothing was removed by them.").wait_for()
    assert not page.get_by_text("Stricter rules wait").is_visible()
    page.goto(f"/runs/{number}/logs/")
    page.get_by_text("hello").first.wait_for()
    choose_logs(page, "30")
    page.get_by_role("button", name="Confirm and save").click()
    page.get_by_text("Stricter rules wait").wait_for()
    hub.manage("shell", "-c", REMOVE)
    page.goto(f"/runs/{number}/logs/")
    page.get_by_text("The logs of this run were removed on ").wait_for()
    assert page.locator("section.log-view").count() == 0
