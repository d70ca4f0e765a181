from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs.models import Run
from tests.people import client_of, make_stranger, make_workspace
from tests.tracking.builders import logged_run
from tests.tracking.comparing.builders import trained
from tracking.comparison import tables
from tracking.comparison.figures import direction, metric_figures


def page(client: Client, *runs: Run, **query: Any) -> str:
    answer = client.get("/compare/", {"runs": ",".join(str(run.number) for run in runs), **query})
    assert answer.status_code == 200
    return str(answer.content.decode())


def compared(html: str) -> list[int]:
    """The numbers of the runs whose curves the page draws."""
    result = re.search(r'<span id="curves-config" hidden>(.*?)</span>', html)
    assert result
    return [run["number"] for run in json.loads(unescape(result[1]))["runs"]]


class TestTables:
    def test_say_where_a_run_differs_from_the_first(self, db: None) -> None:
        runs = [
            trained(params={"lr": "0.1", "model": "mlp"}),
            trained(params={"lr": "0.2", "model": "mlp", "layers": "3"}),
        ]
        table = tables.params_table(runs)
        told = {row.name: [(cell.text, cell.differs) for cell in row.cells] for row in table.rows}
        assert told == {
            "layers": [(None, False), ("3", True)],
            "lr": [("0.1", False), ("0.2", True)],
            "model": [("mlp", False), ("mlp", False)],
        }
        assert table.different == 2

    def test_notice_a_difference_beyond_what_is_shown(self, db: None) -> None:
        runs = [trained(params={"prompt": "x" * 900 + end}) for end in "ab"]
        (row,) = tables.params_table(runs).rows
        assert row.differs
        assert row.cells[0].text == row.cells[1].text

    def test_that_are_too_long_leave_out_equal_values_first(
        self, db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tables, "MAX_ROWS", 2)
        common = {"a": "1", "b": "1"}
        runs = [trained(params=common | {"lr": lr, "opt": lr, "seed": lr}) for lr in ("1", "2")]
        table = tables.params_table(runs)
        assert ([row.name for row in table.rows], table.omitted) == (["lr", "opt"], 3)
        alone = tables.params_table(runs[:1])
        assert ([row.name for row in alone.rows], alone.omitted) == (["a", "b"], 3)

    def test_a_run_that_has_not_started_has_no_duration(self, db: None) -> None:
        runs = [trained(started_at=None), trained()]
        cells = {row.name: [cell.text for cell in row.cells] for row in tables.attributes_table(runs).rows}
        assert cells["Duration"][0] is None
        assert cells["Duration"][1]

    def test_attributes_that_no_run_has_have_no_row(self, db: None) -> None:
        names = [row.name for row in tables.attributes_table([trained(), trained()]).rows]
        assert {"State", "Experiment", "Started"} <= set(names)
        assert "GPUs per node" not in names


class TestFigures:
    @pytest.mark.parametrize(
        ("key", "better"),
        [
            ("train/loss", "lower"),
            ("eval/accuracy", "higher"),
            ("val_f1", "higher"),
            ("rmse", "lower"),
            ("learning_rate", ""),
            ("system/gpu_error", ""),
        ],
    )
    def test_a_name_may_tell_which_way_is_better(self, key: str, better: str) -> None:
        assert direction(key) == better

    def test_the_best_is_marked(self, db: None, valkey: str) -> None:
        runs = [
            trained(curves={"loss": [3, 1, 2], "x": [5]}),
            trained(curves={"loss": [9, 0.5, 3], "x": [7]}),
            trained(),
        ]
        loss, other = metric_figures(runs)
        assert [(item.value, item.mark) for item in loss.last] == [(2.0, "best"), (3.0, ""), (None, "")]
        assert [(item.value, item.mark) for item in loss.min] == [(1.0, ""), (0.5, "best"), (None, "")]
        assert [item.mark for item in other.last] == ["lowest", "highest", ""]

    def test_nothing_is_best_where_all_are_alike(self, db: None, valkey: str) -> None:
        (row,) = metric_figures([trained(curves={"loss": [1]}), trained(curves={"loss": [1]})])
        assert {item.mark for item in row.last} == {""}


class TestPage:
    def test_shows_the_runs_in_the_order_of_the_address(self, viewer: Client) -> None:
        one, other = trained("one", curves={"loss": [1]}), trained("other", curves={"loss": [2]})
        html = page(viewer, other, one)
        assert compared(html) == [other.number, one.number]
        assert html.index(">other") < html.index(">one")

    def test_shows_pinned_runs_besides_unless_they_are_put_away(self, viewer: Client) -> None:
        run, pinned = trained(curves={"loss": [1]}), trained("baseline", pinned=True)
        assert compared(page(viewer, run)) == [run.number, pinned.number]
        away = page(viewer, run, without=pinned.number)
        assert compared(away) == [run.number]
        assert f'data-add-run="{pinned.number}"' in away

    def test_of_more_than_twenty_the_first_are_shown_with_a_sentence(self, viewer: Client) -> None:
        runs = [trained(curves={"loss": [1]}) for _ in range(22)]
        html = page(viewer, *runs)
        assert compared(html) == [run.number for run in runs[:20]]
        assert "22 runs are selected, but at most 20 can be compared" in html

    def test_says_which_runs_are_not_there_whosever_they_are(self, viewer: Client) -> None:
        run, foreign = trained(curves={"loss": [1]}), logged_run("secret", workspace=make_workspace("other"))
        html = page(viewer, run, foreign)
        assert f"Run {foreign.number} is not available" in html
        assert "secret" not in html

    def test_teaches_how_to_begin_where_nothing_is_named(self, viewer: Client) -> None:
        assert "Nothing to compare yet" in page(viewer)

    def test_an_address_that_can_be_no_runs_is_told_so(self, viewer: Client) -> None:
        answer = viewer.get("/compare/", {"runs": "1;2"})
        assert answer.status_code == 400
        assert b"neither a run" in answer.content

    def test_a_group_that_means_nothing_is_told_and_left_out(self, viewer: Client) -> None:
        html = page(viewer, trained(curves={"loss": [1]}), group="nonsense")
        assert "must be params.NAME or tags.NAME" in html

    def test_runs_of_a_group_share_a_colour(self, viewer: Client) -> None:
        runs = [trained(params={"lr": lr}, curves={"loss": [1]}) for lr in ("1", "2", "1")]
        html = page(viewer, *runs, group="params.lr")
        colors = re.findall(r'class="cm-run">\s*<i[^>]*--th-chart-(\d)', html)
        assert colors == ["1", "2", "1"]

    @pytest.mark.parametrize("group", ["params.lr", "tags.team"])
    def test_a_group_that_the_list_would_not_offer_stays_chosen_in_it(
        self, viewer: Client, group: str
    ) -> None:
        runs = [trained(params={"lr": lr}, tags={"team": "a"}, curves={"loss": [1]}) for lr in ("1", "2")]
        assert f'<option value="{group}" selected>' in page(viewer, *runs, group=group)

    def test_what_was_logged_is_text_whatever_it_spells(self, viewer: Client) -> None:
        run = trained("<b>x</b>", params={"<i>": "<script>alert(1)</script>"}, curves={"loss": [1]})
        html = page(viewer, run, sections="params,relations")
        assert "<script>alert" not in html
        assert "<b>x" not in html

    def test_is_for_members(self, db: None) -> None:
        assert client_of(make_stranger()).get("/compare/").status_code == 404
        assert client_of(None).get("/compare/").status_code == 302


class TestPicker:
    def test_finds_runs_that_are_not_compared_yet(self, viewer: Client) -> None:
        one, other = trained("digits one"), trained("digits other")
        trained("cats")
        html = viewer.get("/compare/candidates/", {"q": "digits", "runs": str(one.number)}).content.decode()
        assert re.findall(r'data-add-run="(\d+)"', html) == [str(other.number)]
        assert f"runs={one.number},{other.number}" in html

    def test_offers_the_pinned_ones_first(self, viewer: Client) -> None:
        pinned, newest = trained("baseline", pinned=True), trained("newest")
        html = viewer.get("/compare/candidates/").content.decode()
        assert re.findall(r'data-add-run="(\d+)"', html) == [str(pinned.number), str(newest.number)]

    def test_says_when_there_is_no_room(self, viewer: Client) -> None:
        html = viewer.get("/compare/candidates/", {"runs": ",".join(map(str, range(1, 21)))}).content.decode()
        assert "Remove one first" in html

    def test_offers_runs_beside_an_address_that_cannot_be_read(self, viewer: Client) -> None:
        run = trained("digits")
        html = viewer.get("/compare/candidates/", {"runs": "1;2"}).content.decode()
        assert re.findall(r'data-add-run="(\d+)"', html) == [str(run.number)]
