"""Searches by logged metrics, params and tags, and their order."""

from __future__ import annotations

import math

import pytest

from tests.tracking.search.builders import found_names, put_metric, run_with_data
from tracking.search import prefilter

pytestmark = pytest.mark.django_db
LONG = "x" * 200


@pytest.fixture
def four_runs() -> None:
    run_with_data(
        "a", metrics={"acc": 0.9, "loss": 0.1}, params={"opt": "adam", "lr": "0.1"}, tags={"team": "vision"}
    )
    run_with_data("b", metrics={"acc": 0.5}, params={"opt": "Adam", "lr": "1e-3"}, tags={"team": "speech"})
    run_with_data("c", metrics={"acc": math.nan, "loss": math.inf}, params={"opt": "sgd"})
    run_with_data("d")


@pytest.mark.usefixtures("four_runs")
class TestLogged:
    @pytest.mark.parametrize(("text", "names"), [
        ("metrics.acc > 0.5", "a"),
        ("metrics.acc >= 0.5", "a b"),
        ("metrics.acc < 1", "a b"),
        ("metrics.acc = 0.5", "b"),
        ("metrics.loss > 1e300", "c"),
        ("metrics.loss = inf", "c"),
        ("params.opt = 'adam'", "a"),
        ("params.opt != 'adam'", "b c"),
        ("params.opt LIKE 'ad%'", "a"),
        ("params.opt ILIKE 'AD%'", "a b"),
        ("params.opt LIKE '_dam'", "a b"),
        ("params.opt IN ('adam', 'sgd')", "a c"),
        ("params.opt NOT IN ('adam', 'sgd')", "b"),
        ("params.lr > 0.01", "a"),
        ("params.lr = 0.001", "b"),
        ("params.lr != 0.001", "a"),
        ("params.lr < inf", "a b"),
        ("params.lr > -Infinity", "a b"),
        ("params.lr = '0.001'", ""),
        ("tags.team = 'vision'", "a"),
        ("tags.team IS NULL", "c d"),
        ("params.opt IS NOT NULL", "a b c"),
        ("metrics.acc IS NULL", "d"),
        ("metrics.acc > 0.1 AND params.opt = 'Adam'", "b"),
        ("metrics.acc > 0.8 OR params.opt = 'sgd'", "a c"),
        ("metrics.acc > 0.4 AND metrics.acc < 0.6", "b"),
        ("(metrics.acc > 0.8 OR params.opt = 'sgd') AND NOT tags.team = 'vision'", "c"),
        ("metrics.nope = 1", ""),
        ("params.o = 'adam'", ""),
    ])  # fmt: skip
    def test_finds(self, text: str, names: str) -> None:
        assert sorted(found_names(text)) == names.split()

    def test_nan_is_only_unequal_as_in_mlflow(self) -> None:
        assert sorted(found_names("metrics.acc != 0.5")) == ["a", "c"]
        assert found_names("metrics.acc < 100") == ["b", "a"]

    def test_nan_can_be_asked_for(self) -> None:
        assert found_names("metrics.acc = nan") == ["c"]
        assert sorted(found_names("metrics.acc != nan")) == ["a", "b"]

    def test_not_is_the_rest_of_all_runs(self) -> None:
        assert sorted(found_names("NOT metrics.acc > 0.5")) == ["b", "c", "d"]
        assert sorted(found_names("NOT params.opt != 'adam'")) == ["a", "d"]


class TestText:
    def test_percent_and_underscore_can_be_meant(self) -> None:
        for name in ("50%", "50x", "a_b", "axb", "a*b", "[x]", "a\\b"):
            run_with_data(name, params={"p": name})
        assert found_names(r"params.p LIKE '50\%'") == ["50%"]
        assert found_names(r"params.p LIKE 'a\_b'") == ["a_b"]
        assert found_names(r"params.p LIKE 'a*b'") == ["a*b"]
        assert found_names(r"params.p LIKE '[x]'") == ["[x]"]
        assert found_names(r"params.p LIKE 'a\b'") == ["a\\b"]
        assert found_names(r"run_name ILIKE 'A\_%'") == ["a_b"]

    def test_a_value_longer_than_the_index_is_compared_whole(self) -> None:
        run_with_data("one", params={"p": LONG + "1"})
        run_with_data("two", params={"p": LONG + "2"})
        run_with_data("bare", params={"p": LONG})
        assert found_names(f"params.p = '{LONG}1'") == ["one"]
        assert found_names(f"params.p = '{LONG}'") == ["bare"]
        assert sorted(found_names(f"params.p != '{LONG}1'")) == ["bare", "two"]
        assert found_names("params.p LIKE '%2'") == ["two"]
        assert sorted(found_names(f"params.p IN ('{LONG}1', '{LONG}2', 'z')")) == ["one", "two"]

    def test_quotes_and_unicode_stay_themselves(self) -> None:
        run_with_data("x", params={"größe": "it's"}, tags={"a b": 'say "hi"'})
        assert found_names("params.größe = 'it''s'") == ["x"]
        assert found_names("tags.`a b` = 'say \"hi\"'") == ["x"]


class TestParts:
    def test_least_and_greatest_can_be_asked_for(self) -> None:
        run = run_with_data("x")
        put_metric(run, "loss", 0.5, smallest=0.1, largest=2.0)
        assert found_names("min(metrics.loss) < 0.2") == found_names("max(metrics.loss) = 2") == ["x"]
        assert found_names("metrics.loss < 0.2") == []


@pytest.mark.usefixtures("four_runs")
class TestOrder:
    @pytest.mark.parametrize(("order", "names"), [
        ("metrics.acc", "b a c d"),
        ("metrics.acc DESC", "a b c d"),
        ("metrics.loss DESC", "c a d b"),
        ("params.lr", "b a d c"),
        ("params.opt DESC", None),
        ("tags.team", "b a d c"),
        ("run_name", "a b c d"),
        ("start_time DESC", "d c b a"),
        ("end_time", "d c b a"),
    ])  # fmt: skip
    def test_missing_comes_last_and_nan_before_it(self, order: str, names: str | None) -> None:
        if names:
            assert found_names("", order) == names.split()
        assert found_names("", order)[-1] == "d" or names

    @pytest.mark.parametrize(
        "order", ["metrics.acc DESC", "params.opt", "tags.team", "params.lr", "duration"]
    )
    def test_pages_hold_every_run_once(self, order: str) -> None:
        pages = [found_names("", order, limit=1, skip=skip) for skip in range(5)]
        assert [name for page in pages for name in page] == found_names("", order)
        assert pages[4] == []

    def test_few_found_beforehand_come_in_the_same_order(self) -> None:
        condition = "params.opt IS NOT NULL"
        for order in ("metrics.acc", "metrics.acc DESC", "metrics.loss", "params.lr DESC", "tags.team"):
            assert found_names(condition, order) == [name for name in found_names("", order) if name != "d"]

    @pytest.mark.parametrize(("condition", "order"), [
        ("metrics.acc != 0.5", "metrics.acc"),
        ("metrics.acc > 0.1", "metrics.acc DESC"),
        ("params.opt != 'adam'", "params.opt"),
        ("params.opt NOT IN ('sgd')", "params.opt DESC"),
        ("params.opt LIKE '%d%'", "params.opt"),
        ("tags.team != 'vision'", "tags.team"),
    ])  # fmt: skip
    def test_a_condition_on_the_key_of_the_order_finds_as_many_without_a_search_beforehand(
        self, condition: str, order: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = found_names(condition, order)
        assert expected
        monkeypatch.setattr(prefilter, "FEW", 0)
        assert found_names(condition, order) == expected

    def test_the_second_key_decides_between_equals(self) -> None:
        run_with_data("e", metrics={"acc": 0.9, "loss": 0.01})
        assert found_names("metrics.acc = 0.9", "metrics.acc", "metrics.loss") == ["e", "a"]
        assert found_names("", "tags.team DESC", "metrics.loss DESC", "run_name") == ["a", "b", "c", "e", "d"]

    def test_the_newest_is_first_where_nothing_is_said(self) -> None:
        assert found_names() == ["d", "c", "b", "a"]
