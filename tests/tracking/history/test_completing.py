from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.models import Experiment
from tests.people import client_of, make_contributor, make_owner, make_workspace
from tests.tracking.history.table_page import address
from tests.tracking.search.builders import run_with_data
from tracking.history import key_catalog
from tracking.history.completion import complete
from tracking.search import FilterError, parse

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _runs() -> None:
    run_with_data(
        "a",
        metrics={"val_acc": 1, "val/loss": 2, "my acc": 3},
        params={"opt": "adam", "lr": "0.1"},
        tags={"team": "it's"},
    )
    run_with_data("b", params={"opt": "sgd"}, experiment="cats")


def offered(text: str) -> list[str]:
    """The text with each offer in its place."""
    completion = complete(make_workspace(), text, len(text))
    return [text[: completion.begin] + offer.text for offer in completion.offers]


class TestCompletion:
    @pytest.mark.parametrize(("text", "expected"), [
        ("metrics.v", ["metrics.val/loss", "metrics.val_acc"]),
        ("metrics.my", ["metrics.`my acc`"]),
        ("metrics.`my", ["metrics.`my acc`"]),
        ("params.opt ", ["params.opt =", "params.opt !="]),
        ("params.opt =", []),
        ("params.opt = ", ["params.opt = 'adam'", "params.opt = 'sgd'"]),
        ("params.opt = 'a", ["params.opt = 'adam'"]),
        ("params.opt IN ('adam', ", ["params.opt IN ('adam', 'adam'", "params.opt IN ('adam', 'sgd'"]),
        ("tags.team = ", ["tags.team = 'it''s'"]),
        ("state = 'fa", ["state = 'Failed'"]),
        ("experiment = 'c", ["experiment = 'cats'"]),
        ("user_id = '", ["user_id = 'olivia'"]),
        ("starred ", ["starred AND", "starred OR"]),
        ("starred A", ["starred AND"]),
        ("NOT params.o", ["NOT params.opt"]),
        ("min(metrics.val_", ["min(metrics.val_acc"]),
        ("min(metrics.val_acc) ", ["min(metrics.val_acc) =", "min(metrics.val_acc) !="]),
        ("metrics.val_acc > ", []),
        ("duration > ", ["duration > 10min", "duration > 1h"]),
        ("nonsense.", []),
        ("params.opt IN ", ["params.opt IN ("]),
        ("starred = ", ["starred = true", "starred = false"]),
        ("start_time > ", ["start_time > '1d ago'", "start_time > '7d ago'"]),
        ("kind = '", ["kind = 'job'", "kind = 'external'"]),
        ("run_name = '", []),
        ("datasets.name = '", []),
    ])  # fmt: skip
    def test_offers_what_may_come_next(self, text: str, expected: list[str]) -> None:
        assert offered(text)[: max(len(expected), 1)] == expected or (not expected and offered(text) == [])

    def test_begins_with_every_kind_of_key(self) -> None:
        assert {"metrics.val_acc", "params.lr", "state", "tags.team", "datasets.name"} <= {*offered("")}

    def test_in_the_middle_it_takes_the_place_of_what_stands_before_the_cursor(self) -> None:
        completion = complete(make_workspace(), "params.o = 'x'", 8)
        assert (completion.begin, completion.offers[0].text) == (0, "params.opt")

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
    @given(st.text(max_size=20), st.integers(0, 25))
    def test_takes_any_text(self, text: str, cursor: int) -> None:
        completion = complete(make_workspace(), text, min(cursor, len(text)))
        assert 0 <= completion.begin <= len(text)

    def test_every_key_that_is_offered_can_be_read(self) -> None:
        for text in offered(""):
            assert (
                readable(f"{text} IS NULL")
                or readable(f"{text} = 'x'")
                or readable(f"{text} = 1")
                or readable(text)
            )

    def test_the_page_is_told_what_is_wrong_as_well(self) -> None:
        client = client_of(make_owner())
        response = client.get(address("/runs/complete/", filter="metrics.val_acc > x", at="19")).json()
        assert response["error"] == {"message": "metrics.val_acc is compared with a number", "position": 18}
        assert client.get(address("/runs/complete/", filter="", at="nonsense")).json()["error"] is None


class TestKnown:
    def test_keys_are_those_of_all_runs_of_the_workspace(self) -> None:
        completion = key_catalog.workspace_keys(make_workspace())
        assert (completion.metrics, completion.params, completion.tags) == (
            ("my acc", "val/loss", "val_acc"),
            ("lr", "opt"),
            ("team",),
        )

    def test_keys_of_older_experiments_are_left_out_where_there_are_many(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(key_catalog, "MAX_KEYS", 1)
        monkeypatch.setattr(key_catalog, "LATEST_RUNS", 0)
        for number, name in enumerate(("older", "newer", "newest"), start=1):
            run = run_with_data(name, params={name: "1"}, experiment=name)
            Experiment.objects.filter(pk=run.experiment_id).update(updated_at=f"2100-01-0{number}T00:00:00Z")
        assert key_catalog.workspace_keys(make_workspace()).params == ("newer", "newest")

    def test_a_menu_of_columns_opens_beside_a_filter_that_is_wrong(self) -> None:
        text = client_of(make_owner()).get("/runs/menu/columns/?filter=metrics.acc+%3E")
        assert text.status_code == 200
        assert 'value="params.lr"' in text.content.decode()

    def test_menus_show_them_with_what_is_chosen(self) -> None:
        client = client_of(make_contributor())
        text = client.get("/runs/menu/columns/?column=params.lr").content.decode()
        assert 'value="params.lr" checked' in text
        assert 'value="min(metrics.`my acc`)"' in text
        groups = client.get("/runs/menu/groups/?group=params.opt&filter=starred").content.decode()
        assert 'value="params.opt" checked' in groups
        assert '<input type="hidden" name="filter" value="starred">' in groups
        assert client.get("/runs/menu/nonsense/").status_code == 404


def readable(text: str) -> bool:
    try:
        parse(text)
    except FilterError:
        return False
    return True
