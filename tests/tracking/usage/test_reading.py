from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from jobs.models import Run
from tests.jobs.builders import queued
from tests.people import make_person, make_workspace, principal_of
from tracking.models import UsageEntry
from tracking.usage import usage_report
from tracking.usage.months import add_months, parse_month
from workspaces.access import Principal
from workspaces.states import Role

JULY, AUGUST = date(2026, 7, 1), date(2026, 8, 1)


def entry(who: Principal, run_number: int, month: date, gpu_hours: float, **more: Any) -> UsageEntry:
    attempt = (
        UsageEntry.objects.filter(workspace=who.workspace, run_number=run_number, month=month).count() + 1
    )
    given = {
        "user_name": "carl",
        "experiment_name": "digits",
        "cluster_name": "local",
        "node_seconds": gpu_hours * 1800,
    } | more
    return UsageEntry.objects.create(
        workspace=who.workspace,
        run_number=run_number,
        attempt=attempt,
        month=month,
        gpu_seconds=gpu_hours * 3600,
        **given,
    )


@pytest.fixture
def filled(who: Principal) -> Principal:
    """Three runs of two people in two months; run 2 was tried twice, and of run 3 nothing was measured."""
    entry(who, 1, JULY, 2.0, energy_j=7200.0)
    entry(who, 1, AUGUST, 1.0, energy_j=3600.0)
    entry(who, 2, AUGUST, 4.0, energy_j=1800.0, user_name="vera", experiment_name="faces")
    entry(who, 2, AUGUST, 8.0, energy_j=1800.0, user_name="vera", experiment_name="faces")
    entry(who, 3, AUGUST, 0.5, cluster_name="big")
    return who


def response(who: Principal, by: str, *months: date) -> list[tuple[Any, ...]]:
    lines = usage_report.usage_lines(usage_report.entries(who.workspace, *months), by)
    return [(line.name, line.gpu_hours, line.node_hours, line.energy_wh, line.runs) for line in lines]


class TestLines:
    def test_by_person_the_most_first(self, filled: Principal) -> None:
        assert response(filled, "user") == [("vera", 12.0, 6.0, 1.0, 1), ("carl", 3.5, 1.75, 3.0, 2)]

    def test_the_largest_runs_alone(self, filled: Principal) -> None:
        for _ in range(4):  # the numbers of the first three have entries already
            run = queued(filled)
        entry(filled, run.number, AUGUST, 1.5, run=run)
        entries = usage_report.entries(filled.workspace)
        lines, count = usage_report.largest_runs(entries, 3)
        assert [(line.name, line.gpu_hours, line.runs) for line in lines] == [
            ("2", 12.0, 1),
            ("1", 3.0, 1),
            (str(run.number), 1.5, 1),
        ]
        assert lines[-1].title == run.display_name
        assert count == len(usage_report.usage_lines(entries, "run"))
        assert lines == usage_report.usage_lines(entries, "run")[:3]

    def test_by_month_in_their_order(self, filled: Principal) -> None:
        assert response(filled, "month") == [("2026-07", 2.0, 1.0, 2.0, 1), ("2026-08", 13.5, 6.75, 2.0, 3)]

    def test_by_cluster_experiment_and_run(self, filled: Principal) -> None:
        assert response(filled, "cluster") == [("local", 15.0, 7.5, 4.0, 2), ("big", 0.5, 0.25, None, 1)]
        assert response(filled, "experiment") == [("faces", 12.0, 6.0, 1.0, 1), ("digits", 3.5, 1.75, 3.0, 2)]
        assert [line[:2] for line in response(filled, "run")] == [("2", 12.0), ("1", 3.0), ("3", 0.5)]

    def test_of_some_months(self, filled: Principal) -> None:
        assert response(filled, "user", JULY, JULY) == [("carl", 2.0, 1.0, 2.0, 1)]
        assert response(filled, "user", add_months(AUGUST)) == []

    def test_say_of_how_much_the_energy_is_known(self, filled: Principal) -> None:
        total = usage_report.total(usage_report.entries(filled.workspace, AUGUST, AUGUST))
        assert (total.gpu_hours, total.measured_gpu_hours, total.energy_wh, total.runs) == (
            13.5,
            13.0,
            2.0,
            3,
        )

    def test_of_another_workspace_are_not_among_them(self, filled: Principal) -> None:
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        entry(other, 1, JULY, 100.0)
        assert response(filled, "month", JULY, JULY) == [("2026-07", 2.0, 1.0, 2.0, 1)]

    def test_of_an_experiment_go_by_the_name_that_it_has_now(self, who: Principal) -> None:
        run = queued(who)
        entry(who, run.number, JULY, 1.0, run=run, experiment_name="old name")
        entry(who, 99, JULY, 1.0, experiment_name=run.experiment.name)
        assert response(who, "experiment") == [(run.experiment.name, 2.0, 1.0, None, 2)]

    def test_of_runs_name_those_that_are_there(self, who: Principal) -> None:
        run, deleted = queued(who), queued(who)
        for item in (run, deleted):
            entry(who, item.number, JULY, 1.0, run=item)
        Run.objects.filter(pk=deleted.pk).update(deleted_at=deleted.created_at)
        titles = {
            line.name: line.title
            for line in usage_report.usage_lines(usage_report.entries(who.workspace), "run")
        }
        assert titles == {str(run.number): run.display_name, str(deleted.number): ""}


class TestOfRuns:
    def test_hours_and_energy_of_each_run_are_added_up(self, who: Principal) -> None:
        little, much, none = queued(who), queued(who), queued(who)
        entry(who, little.number, JULY, 1.0, run=little, energy_j=3600.0)
        entry(who, much.number, JULY, 2.0, run=much)
        entry(who, much.number, AUGUST, 3.0, run=much)
        assert usage_report.hours_by_run([little.pk, much.pk, none.pk]) == {
            little.pk: (1.0, 1.0),
            much.pk: (5.0, None),
        }


@pytest.mark.parametrize(
    ("text", "month"),
    [("2026-07", JULY), ("2026-13", None), ("july", None), ("2026-07-02", None), ("", None)],
)
def test_a_month_is_spelled(text: str, month: date | None) -> None:
    assert parse_month(text) == month


def test_months_are_counted_over_the_turn_of_the_year() -> None:
    assert (add_months(date(2026, 12, 1)), add_months(date(2026, 1, 1), -1), add_months(JULY, -12)) == (
        date(2027, 1, 1),
        date(2025, 12, 1),
        date(2025, 7, 1),
    )
