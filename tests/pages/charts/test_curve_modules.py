"""The pure parts of the curves, run where they live: in a browser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.pages.logs.test_log_modules import tab
from tracking.curves.smoothing import moving_average
from tracking.templatetags.figures import figure

__all__ = ["tab"]
pytestmark = pytest.mark.browser
USUAL = {
    "axis": "step",
    "smoothing": 0,
    "logx": False,
    "logy": False,
    "q": "",
    "group": "",
    "keys": [],
    "hide": [],
    "wide": [],
    "closed": [],
    "opened": [],
    "from": None,
    "to": None,
}


def run(tab: Any, module: str, code: str, given: Any = None) -> Any:
    """The value of `code`, in which `m` is the module and `given` the argument."""
    return tab.evaluate(
        f"async (given) => {{ const m = await import('/static/js/curves/{module}.js'); {code} }}", given
    )


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (0.123456, "0.1235"),
            (0.5, "0.5"),
            (0, "0"),
            (12, "12"),
            (1_234_567, "1,234,567"),
            (-0.25, "−0.25"),
            (-3, "−3"),
            (1234.5678, "1235"),
            (12345.6, "12346"),
            (99999.5, "100000"),
            (0.0001234, "0.0001234"),
            (0.00001234, "1.234e−5"),
            (5e12, "5e12"),
            (1.5e-300, "1.5e−300"),
            (-2.5e-7, "−2.5e−7"),
            (1e9, "1e9"),
        ],
    )
    def test_read_alike_on_the_page_and_in_its_charts(self, tab: Any, value: float, shown: str) -> None:
        assert (run(tab, "numbers", "return m.number(given)", value), figure(value)) == (shown, shown)

    def test_say_what_is_no_number(self, tab: Any) -> None:
        code = "return ['NaN', 'Infinity', '-Infinity', null].map(m.number)"
        assert run(tab, "numbers", code) == [figure(value) for value in (math.nan, math.inf, -math.inf, None)]

    def test_a_span_is_said_once_where_its_ends_read_alike(self, tab: Any) -> None:
        code = (
            "return [m.span([3, 1, 2]), m.span([0.11111, 0.11112]), m.span(['NaN']), m.span([]), "
            "m.span([null, 4])]"
        )
        assert run(tab, "numbers", code) == ["1 – 3", "0.1111", "NaN", "–", "4"]


class TestSmoothing:
    def test_is_the_same_as_the_hubs(self, tab: Any) -> None:
        values = np.random.default_rng(2).normal(size=500)
        found = run(tab, "smoothing", "return m.smoothed(given, 0.93)", values.tolist())
        assert found == pytest.approx(moving_average(values, 0.93))

    def test_leaves_gaps_where_they_are(self, tab: Any) -> None:
        assert run(tab, "smoothing", "return m.smoothed([1, null, 1], 0.5)") == [1, None, 1]


class TestAddress:
    def test_what_makes_no_sense_is_as_if_it_were_not_there(self, tab: Any) -> None:
        search = "?axis=epoch&smoothing=7&logx=yes&from=9&to=3&hide=,,"
        assert run(tab, "address", "return m.read(given)", search) == USUAL

    def test_what_is_written_is_read_again(self, tab: Any) -> None:
        state = USUAL | {
            "axis": "relative",
            "smoothing": 0.95,
            "logy": True,
            "q": "a b&c",
            "hide": ["3", "4"],
            "wide": ["train/loss", "a,b"],
            "from": -1.5,
            "to": 2e6,
            "keys": ["x", "y"],
            "group": "params.lr",
            "closed": ["", "eval"],
            "opened": ["system"],
        }
        assert run(tab, "address", "m.write(given); return m.read()", state) == state
        assert run(tab, "address", "m.write(given); return location.search", USUAL) == ""


class TestAxes:
    @pytest.mark.parametrize("span", [0.005, 1, 45, 600, 7_200, 86_400, 40 * 86_400, 4_000 * 86_400])
    def test_ticks_since_the_start_are_few_and_all_different(self, tab: Any, span: float) -> None:
        found = run(tab, "axes", "return m.sinceTicks(0, given, 400)", span)
        assert 2 <= len(found) <= 7
        assert found[0] == [0, "0"]
        assert len({label for _, label in found}) == len(found)
        assert all(0 <= at <= span for at, _ in found)

    def test_before_the_start_is_said_with_a_minus(self, tab: Any) -> None:
        ticks = run(tab, "axes", "return m.sinceTicks(-7200, 0, 130).map(([, label]) => label)")
        moments = run(tab, "axes", "return [m.AXIS.relative.moment(-90), m.AXIS.step.moment(1234.4)]")
        assert (ticks, moments) == (["−2 h", "−1 h", "0"], ["−1 min 30 s", "step 1,234"])


LINE = {
    "key": "loss",
    "x": [0, 10, 20, 30],
    "y": [4, 3, 2, 1],
    "marks": [[12, "NaN"], [14, "NaN"], [40, "Infinity"]],
}
OF_LINE = "const line = new m.Line(given, 'a'); const view = { from: 0, to: 40 };"


class TestLine:
    def test_breaks_where_it_is_no_number(self, tab: Any) -> None:
        assert run(tab, "line", f"{OF_LINE} return line.broken(line.y)", LINE) == [
            [0, 10, 12, 20, 30, 40],
            [4, 3, None, 2, 1, None],
        ]

    def test_tells_the_value_or_the_mark_that_is_nearest(self, tab: Any) -> None:
        code = f"{OF_LINE} return [4, 11.5, 29, 39].map((at) => line.at(at, view, 0).value)"
        assert run(tab, "line", code, LINE) == [4, "NaN", 1, "Infinity"]

    def test_tells_nothing_beyond_its_ends(self, tab: Any) -> None:
        code = (
            f"{OF_LINE} return [line.at(60, {{ from: 0, to: 100 }}, 0), line.at(41, {{ from: 0, to: 100 "
            "}, 0).value]"
        )
        assert run(tab, "line", code, LINE) == [None, "Infinity"]

    def test_the_hubs_average_is_drawn_where_it_is_of_this_weight_and_else_one_of_its_own(
        self, tab: Any
    ) -> None:
        told = LINE | {"smooth": [9, 9, 9, 9], "weight": 0.5}
        assert run(
            tab, "line", f"{OF_LINE} return [line.shown(0), line.shown(0.5), line.shown(0.4)[0]]", told
        ) == [
            [4, 3, 2, 1],
            [9, 9, 9, 9],
            pytest.approx(4),
        ]


class TestGroups:
    def test_plain_names_come_first_and_the_machine_last(self, tab: Any) -> None:
        keys = ["train/loss", "system/gpu", "loss", "eval/b", "eval/a10", "eval/a9", "/odd"]
        found = run(tab, "group", "return m.byGroup(given)", keys)
        assert found == ["/odd", "loss", "eval/a9", "eval/a10", "eval/b", "train/loss", "system/gpu"]
