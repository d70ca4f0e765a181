"""Processes that store what they measure, and what others see of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from workspaces.database import outages
from workspaces.hub_metrics.instruments import ROUND_FAILURES, TASK_SECONDS
from workspaces.hub_metrics.models import HubProcess
from workspaces.hub_metrics.processes import living_process_families, measured_processes
from workspaces.hub_metrics.publisher import FORGOTTEN_AFTER, SILENT_AFTER, Publisher
from workspaces.hub_metrics.rounds import measured_round

pytestmark = pytest.mark.django_db


def age(by: timedelta) -> None:
    HubProcess.objects.update(measured_at=timezone.now() - by)


def test_others_see_what_happened_lately_and_what_happened_since_the_start() -> None:
    TASK_SECONDS.labels("tests.before").observe(0.5)
    publisher = Publisher("worker", "1.2.3")
    publisher.publish()
    TASK_SECONDS.labels("tests.lately").observe(0.5)
    publisher.publish()
    (process,) = measured_processes(timezone.now())
    assert (process.row.kind, process.row.version, process.is_silent) == ("worker", "1.2.3", False)
    assert [*process.recent["trainhub_task_seconds"].series] == [("tests.lately",)]
    tasks = next(
        family for family in living_process_families(timezone.now()) if family.name == "trainhub_task_seconds"
    )
    assert {"tests.before", "tests.lately"} <= {sample.labels["task"] for sample in tasks.samples}


def test_a_process_stores_no_more_often_than_needed() -> None:
    publisher = Publisher("web", "1.2.3")
    publisher.publish_due()
    HubProcess.objects.all().delete()
    publisher.publish_due()
    assert not HubProcess.objects.exists()


def test_a_process_without_a_word_is_silent_and_no_longer_scraped_and_then_forgotten() -> None:
    Publisher("web", "1.2.3").publish()
    age(SILENT_AFTER + timedelta(seconds=1))
    (process,) = measured_processes(timezone.now())
    assert process.is_silent
    assert not list(living_process_families(timezone.now()))
    age(FORGOTTEN_AFTER + timedelta(seconds=1))
    Publisher("worker", "1.2.3").publish()
    assert [process.row.kind for process in measured_processes(timezone.now())] == ["worker"]


def test_a_process_that_ends_in_order_is_not_shown() -> None:
    publisher = Publisher("web", "1.2.3")
    publisher.publish()
    publisher.withdraw()
    assert not HubProcess.objects.exists()


def test_a_process_that_ends_while_the_database_is_away_does_not_wait_for_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher("web", "1.2.3")
    publisher.publish()
    monkeypatch.setattr(outages, "_outages", [outages.AWAY])
    publisher.withdraw()
    assert "will show this process as silent" in caplog.text
    assert HubProcess.objects.exists()


def test_a_round_that_fails_is_counted() -> None:
    counted = ROUND_FAILURES.labels("tests.round")
    before = counted._value.get()
    with pytest.raises(ZeroDivisionError), measured_round("tests.round"):
        raise ZeroDivisionError
    assert counted._value.get() == before + 1
