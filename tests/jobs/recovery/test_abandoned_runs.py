"""External runs whose client has promised signs of life fail without them, and only those."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs import external, tags
from jobs.models import Experiment, Run, RunEvent
from jobs.recovery.abandoned_runs import ALIVE_UNTIL, end_abandoned
from jobs.states import RunState
from tests.people import make_contributor, make_workspace

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
PAST = (NOW - timedelta(seconds=1)).isoformat()


@pytest.fixture
def run() -> Run:
    experiment = Experiment.objects.create(workspace=make_workspace(), name="birds")
    return external.create_run(experiment, make_contributor(), external.ExternalRunStart("search"))


def test_a_run_fails_when_its_time_is_over_and_its_journal_says_why(run: Run) -> None:
    tags.set_tags(run, {ALIVE_UNTIL: PAST})
    assert end_abandoned(NOW) == 1
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    message = RunEvent.objects.get(run=run, to_state=RunState.FAILED).message
    assert message == f"Its client has given no sign of life, and had promised one before {PAST}."
    assert end_abandoned(NOW) == 0


@pytest.mark.parametrize(
    "value",
    [(NOW + timedelta(seconds=1)).isoformat(), "", "soon", "2026-02-31T00:00Z", "2020-01-01T00:00:00"],
)
def test_a_run_goes_on_before_its_time_and_where_the_tag_names_no_time(run: Run, value: str) -> None:
    tags.set_tags(run, {ALIVE_UNTIL: value})
    assert end_abandoned(NOW) == 0


def test_a_run_without_the_tag_goes_on_for_ever(run: Run) -> None:
    assert end_abandoned(NOW) == 0


def test_a_run_that_has_ended_keeps_its_state(run: Run) -> None:
    tags.set_tags(run, {ALIVE_UNTIL: PAST})
    external.set_state(run, RunState.COMPLETED, None)
    assert end_abandoned(NOW) == 0


def test_a_run_that_its_client_ends_meanwhile_keeps_that_end(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags.set_tags(run, {ALIVE_UNTIL: PAST})
    set_state = external.set_state

    def set_state_later(*arguments: Any, **options: Any) -> bool:
        set_state(run, RunState.COMPLETED, None)
        return set_state(*arguments, **options)

    monkeypatch.setattr(external, "set_state", set_state_later)
    assert end_abandoned(NOW) == 0
    run.refresh_from_db()
    assert run.state == RunState.COMPLETED


def test_a_client_that_is_back_sets_its_run_to_running(run: Run) -> None:
    tags.set_tags(run, {ALIVE_UNTIL: PAST})
    end_abandoned(NOW)
    tags.set_tags(run, {ALIVE_UNTIL: (NOW + timedelta(hours=1)).isoformat()})
    assert external.set_state(run, RunState.RUNNING, None)
    assert end_abandoned(NOW) == 0
