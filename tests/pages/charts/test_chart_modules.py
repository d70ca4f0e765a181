"""The pure parts of the charts, run where they live: in a browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pages.logs.test_log_modules import tab

__all__ = ["tab"]
pytestmark = pytest.mark.browser
GIB = 2**30


def run(tab: Any, module: str, code: str, given: Any = None) -> Any:
    """The value of `code`, in which `m` is the module and `given` the argument."""
    return tab.evaluate(
        f"async (given) => {{ const m = await import('/static/js/charts/{module}.js'); {code} }}", given
    )


def answer(times: list[int], **series: list[float | None]) -> dict[str, Any]:
    told = {metric: {"mean": values, "max": [*values]} for metric, values in series.items()}
    return {
        "node": "alpha",
        "step_s": 10,
        "times": times,
        "host": {},
        "gpus": [{"uuid": "GPU-a", "index": 0, "name": "H200", "series": told}],
    }


class TestUnits:
    @pytest.mark.parametrize(
        ("value", "unit", "shown"),
        [
            (87, "%", "87 %"),
            (0, "%", "0 %"),
            (12.34, "%", "12.3 %"),
            (None, "%", "–"),
            (70.2 * GIB, "B", "70.2 GiB"),
            (0, "B", "0 B"),
            (2.5e9, "B/s", "2.5 GB/s"),
            (999_000, "B/s", "999 kB/s"),
            (512.4, "W", "512 W"),
            (1.5, "", "1.5"),
            (None, "B", "–"),
        ],
    )
    def test_a_value_reads_as_people_say_it_and_an_unknown_one_is_a_dash(
        self, tab: Any, value: float | None, unit: str, shown: str
    ) -> None:
        assert run(tab, "units", "return m.shown(given[0], given[1])", [value, unit]) == shown

    def test_a_span_names_its_unit_once(self, tab: Any) -> None:
        code = "return [m.span([34, null, 97], '%'), m.span([5, 5], 'W'), m.span([null], '%')]"
        assert run(tab, "units", code) == ["34–97 %", "5 W", "–"]


class TestTicks:
    @pytest.mark.parametrize("span", [30, 900, 3600, 86_400, 7 * 86_400, 30 * 86_400])
    def test_are_few_and_within_the_axis_however_long_it_is(self, tab: Any, span: int) -> None:
        start = 1_795_000_123
        found = run(tab, "timeaxis", "return m.ticks(given[0], given[1], 400)", [start, start + span])
        assert 1 <= len(found) <= 7
        assert all(start <= at <= start + span for at, _ in found)
        assert len({label for _, label in found}) == len(found)


class TestSeries:
    def test_what_nobody_measured_stays_unknown(self, tab: Any) -> None:
        given = answer([0, 10, 20, 30], power_w=[1, None, 3, None])
        code = "const s = new m.Series(given, 10); return [s.times, s.row('GPU-a', 'power_w').mean]"
        assert run(tab, "series", code, given) == [[0, 10, 20], [1, None, 3]], (
            "the newest steps are open until samples come"
        )

    def test_samples_go_on_where_history_ends_and_say_nothing_twice(self, tab: Any) -> None:
        code = """
          const s = new m.Series(given, 10);
          const wanted = { host: new Set(), gpu: new Set(['power_w']) };
          const subjects = ['GPU-a', 'GPU-strange'];
          const metrics = ['power_w', 'fan_pct'];
          const sample = (start, all) => s.append(
            { start, step_s: 1, gpus: { subjects, metrics, values: all.map((value) => [[value, 1], [9, 9]]) } }, 2, wanted);
          sample(8, [7, 7, 7, 7, 7, 7, 7, 7]); // 8 to 15: history reaches to 20
          sample(20, [10, 30, 50, null, 70]);
          return [s.times, s.row('GPU-a', 'power_w'), s.row('GPU-a', 'fan_pct') ?? null, s.rows.has('GPU-strange')];
        """
        times, row, fan, strange = run(tab, "series", code, answer([0, 10], power_w=[1, 2]))
        assert times == [0, 10, 20, 22, 24]
        assert row["mean"] == [1, 2, 20, 50, 70]
        assert row["max"] == [1, 2, 30, 50, 70]
        assert (fan, strange) == (None, False), "only what the charts ask for, of the GPUs that they show"

    def test_a_silence_between_samples_is_a_gap(self, tab: Any) -> None:
        code = """
          const s = new m.Series(given, 10);
          const wanted = { host: new Set(['cpu_pct']), gpu: new Set() };
          const sample = (start) => s.append({ start, step_s: 1, host: { metrics: ['cpu_pct'], values: [[5]] } }, 1, wanted);
          [20, 21, 60].forEach(sample);
          return [s.times, s.row('', 'cpu_pct').mean];
        """
        times, mean = run(tab, "series", code, answer([0, 10], power_w=[1, 2]))
        assert times == [0, 10, 20, 21, 22, 60]
        assert mean == [None, None, 5, 5, None, 5]

    def test_forgets_what_has_left_the_axis(self, tab: Any) -> None:
        code = (
            "const s = new m.Series(given, 10); s.forget(25); return [s.times, s.row('GPU-a', 'power_w').max]"
        )
        assert run(tab, "series", code, answer([0, 10, 20, 30], power_w=[1, 2, 3, 4])) == [[30], [4]]

    def test_a_moment_far_from_any_point_has_no_value(self, tab: Any) -> None:
        code = "const s = new m.Series(given, 10); return [4, 6, 22, 90].map((at) => s.nearest(at))"
        assert run(tab, "series", code, answer([0, 10, 20], power_w=[1, 2, 3])) == [0, 1, 2, -1]


class TestRange:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", {"preset": "1h"}),
            ("?range=7d", {"preset": "7d"}),
            ("?range=constructor", {"preset": "1h"}),
            ("?from=1000&to=2000", {"preset": None, "from": 1000, "to": 2000}),
            ("?from=2000&to=1000", {"preset": "1h"}),
            (
                "?from=2026-11-21T10:00:00Z&to=2026-11-21T11:00:00Z",
                {"preset": None, "from": 1795255200, "to": 1795258800},
            ),
            ("?from=x&to=y", {"preset": "1h"}),
            ("?from=1000&to=1001", {"preset": None, "from": 996, "to": 1006}),
        ],
    )
    def test_is_read_from_the_address(self, tab: Any, query: str, found: dict[str, Any]) -> None:
        assert run(tab, "range", "return m.parse(given)", query) == found
