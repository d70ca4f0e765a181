"""What an open table of runs fetches when a run has changed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from jobs.models import Run
from jobs.states import RunState
from tests.people import client_of, make_owner, make_person, make_workspace
from tests.tracking.history.table_page import address, names, table_text
from tests.tracking.search.builders import put_metric, run_with_data
from tracking.models import Metric
from workspaces.states import Role

pytestmark = pytest.mark.django_db
ROW = re.compile(r'<tr data-version="(\w+)" id="run-(\d+)"')


class OpenTable:
    """A page with the table, as a browser keeps it."""

    def __init__(self, client: Client | None = None, **params: Any) -> None:
        self.client = client or client_of(make_owner())
        self.params = params
        text = self.client.get(address(**params), headers={"HX-Request": "true"}).content.decode()
        self.versions = {int(number): version for version, number in ROW.findall(text)}
        self.parts: dict[int, str] = {}
        found = re.search(r'data-shape="(\w*)"', text)
        self.shape = found[1] if found else ""

    def refresh(self, *changed: Run, knows_all: bool = True) -> tuple[int, str]:
        params = {
            **self.params,
            "shape": self.shape,
            "rows": _joined(self.versions),
            "parts": _joined(self.parts),
            **({"changed": "-".join(str(run.number) for run in changed)} if knows_all else {}),
        }
        answer = self.client.get(address("/runs/changes/", **params))
        assert "no-store" in answer["Cache-Control"]
        return answer.status_code, answer.content.decode()


def _joined(versions: dict[int, str]) -> str:
    return "-".join(f"{number}.{version}" for number, version in versions.items())


def order(text: str) -> list[int]:
    found = re.search(r'data-order="([\d ]*)"', text)
    assert found is not None, text
    return [int(number) for number in found[1].split()]


def sent(text: str) -> list[int]:
    return [int(number) for _, number in ROW.findall(text)]


class TestChangedRows:
    def test_nothing_is_sent_if_nothing_has_changed(self) -> None:
        run = run_with_data("a")
        run_with_data("b", state=RunState.RUNNING)
        table = OpenTable()
        assert table.refresh(run) == (204, "")
        assert table.refresh(knows_all=False) == (204, "")

    def test_only_the_row_of_a_run_that_has_changed_is_sent(self) -> None:
        first, run, last = run_with_data("a"), run_with_data("b"), run_with_data("c")
        table = OpenTable()
        Run.objects.filter(pk=run.pk).update(state=RunState.FAILED)
        _, text = table.refresh(run)
        assert sent(text) == [run.number]
        assert "Failed" in text
        assert order(text) == [last.number, run.number, first.number]
        assert "1–3 of 3" in text

    def test_a_page_that_was_not_connected_gets_what_it_missed(self) -> None:
        run = run_with_data("a", state=RunState.COMPLETED)
        run_with_data("b", state=RunState.COMPLETED)
        table = OpenTable()
        Run.objects.filter(pk=run.pk).update(pinned=True)
        assert table.refresh() == (204, "")
        assert sent(table.refresh(knows_all=False)[1]) == [run.number]

    def test_new_values_of_an_active_run_are_sent_without_a_message(self) -> None:
        run = run_with_data("a", metrics={"acc": 0.25}, state=RunState.RUNNING)
        table = OpenTable()
        Metric.objects.filter(run=run).update(last_value=0.75)
        status, text = table.refresh()
        assert (status, sent(text)) == (200, [run.number])
        assert "0.75" in text

    def test_a_new_run_comes_to_its_place_and_one_that_no_longer_matches_goes(self) -> None:
        runs = [run_with_data(str(acc), metrics={"acc": acc}) for acc in (0.2, 0.4, 0.8)]
        table = OpenTable(filter="metrics.acc > 0.1", order="metrics.acc DESC")
        new = run_with_data("0.6", metrics={"acc": 0.6})
        Metric.objects.filter(run=runs[1]).update(last_value=0.05)
        _, text = table.refresh(new, runs[1])
        assert order(text) == [runs[2].number, new.number, runs[0].number]
        assert sent(text) == [new.number]

    def test_the_first_of_a_page_pushes_the_last_to_the_next(self) -> None:
        runs = [run_with_data(f"run-{number}") for number in range(50)]
        table = OpenTable()
        new = run_with_data("new")
        _, text = table.refresh(new)
        assert order(text)[0] == new.number
        assert runs[0].number not in order(text)
        assert sent(text) == [new.number]
        assert "1–50 of 51" in text
        assert 'href="?page=2"' in text

    def test_unfolded_child_runs_are_refreshed_where_they_are(self) -> None:
        job = run_with_data("job")
        part = run_with_data("part", parent=job)
        table = OpenTable()
        table.parts = {part.number: "old"}
        _, text = table.refresh(part)
        assert order(text) == [job.number]
        assert sent(text) == [part.number]
        assert 'class="th-part"' in text


class TestWholeTable:
    def test_is_sent_when_the_first_run_appears_and_when_the_last_goes(self) -> None:
        table = OpenTable()
        assert table.refresh() == (204, "")
        run = run_with_data("first")
        _, text = table.refresh(run)
        assert "<thead>" in text
        assert names(text) == ["first"]
        table = OpenTable()
        Run.objects.filter(pk=run.pk).update(archived_at=run.created_at)
        assert "No runs yet" in table.refresh(run)[1]

    def test_is_sent_when_other_columns_are_of_interest(self) -> None:
        run = run_with_data("a")
        table = OpenTable()
        put_metric(run, "val_loss", 0.5)
        assert "val_loss" in table.refresh(run)[1].split("<tbody")[0]

    def test_has_the_actions_that_its_rows_refer_to(self) -> None:
        text = OpenTable().refresh(run_with_data("a"))[1]
        assert 'data-actions-of="external"' in text
        assert "csrfmiddlewaretoken" in text

    def test_groups_are_sent_together_if_one_has_changed(self) -> None:
        run = run_with_data("a", metrics={"acc": 0.25}, params={"opt": "adam"})
        table = OpenTable(group="params.opt", column="metrics.acc")
        assert table.refresh(knows_all=False) == (204, "")
        Metric.objects.filter(run=run).update(last_value=0.75)
        assert "0.75" in table.refresh(run)[1]


class TestRequest:
    def test_other_workspaces_runs_are_not_sent(self) -> None:
        run = run_with_data("secret")
        stranger = make_person("olga", Role.OWNER, make_workspace("other"))
        table = OpenTable(client_of(stranger))
        table.versions = table.parts = {run.number: "old"}
        assert "secret" not in table.refresh(run, knows_all=False)[1]

    @pytest.mark.parametrize(
        "params",
        [
            {"rows": "x.y-1-.2", "parts": "9" * 50, "changed": "x"},
            {"rows": "-".join(f"{number}.a" for number in range(2_000))},
            {"filter": "nonsense"},
            {"order": "a b c", "group": "x"},
        ],
    )
    def test_what_makes_no_sense_is_no_error(self, params: dict[str, str]) -> None:
        run_with_data("a")
        answer = client_of(make_owner()).get(address("/runs/changes/", **params))
        assert answer.status_code in (200, 204)

    def test_what_it_draws_is_what_the_page_draws(self) -> None:
        run = run_with_data("a", metrics={"acc": 0.5})
        table = OpenTable()
        table.versions[run.number] = "old"
        _, text = table.refresh(run)
        row = re.search(r"<tr data-version=.*?</tr>", text, re.DOTALL)
        assert row is not None
        assert row[0] in table_text()
