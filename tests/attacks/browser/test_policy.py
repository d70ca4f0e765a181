"""S18: what the content security policy refuses in Chromium, and that everything which pages need works under
it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin
from tests.violations import WatchedBrowser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
INJECTED = {
    "script-src-elem": (
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; "
        "document.body.append(s)"
    ),
    "script-src-attr": (
        "document.body.insertAdjacentHTML('beforeend', '<img src=/none onerror=\"window.owned = 1\">')"
    ),
    "style-src-elem": (
        "document.body.insertAdjacentHTML('beforeend', '<style>body { display: none }</style>')"
    ),
    "style-src-attr": (
        "document.body.insertAdjacentHTML('beforeend', '<b style=\"position: fixed; inset: 0\">x</b>')"
    ),
    "connect-src": "fetch('http://127.0.0.1:9/').catch(() => 0)",
    "img-src": "document.body.insertAdjacentHTML('beforeend', '<img src=http://127.0.0.1:9/i.png>')",
    "form-action": (
        "const f = document.createElement('form'); f.action = '//127.0.0.1:9'; "
        "document.body.append(f); f.submit()"
    ),
    "base-uri": "document.head.insertAdjacentHTML('beforeend', '<base href=http://127.0.0.1:9/>')",
    "frame-src": "document.body.insertAdjacentHTML('beforeend', '<iframe src=http://127.0.0.1:9/></iframe>')",
    "object-src": "document.body.insertAdjacentHTML('beforeend', '<object data=/static/icon.svg></object>')",
}
"""What an injection would do, by the rule that refuses it."""


def figures_of_kinds() -> dict[str, dict[str, dict[str, Any]]]:
    """A trace of every kind of chart that a user's figure may hold, maps aside, by figure and kind.
    Kinds that have their axes in common are drawn in one figure."""
    grid = [[1, 2], [3, 4]]
    dimensions = {"dimensions": [{"label": "a", "values": [1, 2, 3]}, {"label": "b", "values": [3, 1, 2]}]}
    one, three = {"y": [1, 3, 2]}, {"x": [1, 2, 3], "y": [3, 1, 2], "z": [1, 2, 3]}
    vectors = {**three, "u": [1, 1, 0], "v": [0, 1, 1], "w": [1, 0, 1]}
    corners = {
        "x": [0, 0, 0, 0, 1, 1, 1, 1],
        "y": [0, 0, 1, 1] * 2,
        "z": [0, 1] * 4,
        "value": [1, 2, 3, 4, 5, 6, 7, 8],
    }
    tree = {"labels": ["all", "a", "b"], "parents": ["", "all", "all"], "values": [3, 1, 2]}
    market = {"open": [1, 2], "high": [3, 4], "low": [0, 1], "close": [2, 3]}
    polar = {"r": [1, 2], "theta": [0, 90]}
    pairs = {"x": [1, 2], "y": [1, 2]}
    return {
        "plane": {
            "scatter": one, "scattergl": one, "bar": one, "box": one, "violin": one,
            "histogram": {"x": [1, 1, 2]}, "heatmap": {"z": grid}, "contour": {"z": grid},
            "histogram2d": pairs, "histogram2dcontour": pairs, "image": {"z": [[[255, 0, 0]]]},
            "funnel": {"x": [2, 1]}, "waterfall": {"y": [1, 2]}, "candlestick": market, "ohlc": market,
        },
        "space": {
            "scatter3d": three, "surface": {"z": grid}, "mesh3d": {**three, "x": [0, 1, 0]},
            "cone": vectors, "streamtube": vectors, "isosurface": corners, "volume": corners,
        },
        "circle": {"scatterpolar": polar, "scatterpolargl": polar, "barpolar": polar},
        "triangle": {"scatterternary": {"a": [1, 2], "b": [2, 1], "c": [1, 1]}},
        "own axes": {"carpet": {"a": [0, 1], "b": [0, 1], "y": grid}},
        "impedance": {"scattersmith": {"real": [1, 2], "imag": [0, 1]}},
        "pairs": {"splom": dimensions},
        "no axes": {
            "pie": {"values": [1, 2]}, "parcoords": dimensions, "parcats": dimensions,
            "sunburst": tree, "treemap": tree, "icicle": tree,
            "sankey": {"node": {"label": ["a", "b"]}, "link": {"source": [0], "target": [1], "value": [1]}},
            "indicator": {"value": 1, "mode": "gauge+number"},
            "table": {"header": {"values": ["a"]}, "cells": {"values": [[1]]}},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def figures(hub: Hub) -> Logged:
    run = begin(hub, "every kind of figure")
    told = run.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run.id}).raise_for_status().json()
    folder = f"/api/2.0/mlflow-artifacts/artifacts/{told['run']['info']['experiment_id']}/{run.id}/artifacts"
    for name, traces in figures_of_kinds().items():
        data = [{"type": kind, **trace} for kind, trace in traces.items()]
        figure = {"data": data, "layout": {"title": {"text": name}}}
        run.client.put(f"{folder}/{name}.json", content=json.dumps(figure).encode()).raise_for_status()
    run.log("loss", [1 / step for step in range(1, 50)])
    run.end()
    return run


@pytest.mark.parametrize("rule", INJECTED)
def test_an_injection_is_refused_and_reported(rule: str, page: Any, browser: WatchedBrowser) -> None:
    """Holds, too, that the tests in a browser notice violations at all."""
    page.goto("/")
    page.evaluate(f"() => {{ {INJECTED[rule]} }}")
    found = eventually(browser.take_violations, what=f"{rule} is reported")
    assert any(text.startswith(f"{rule} refused") for text in found), found
    assert page.evaluate("window.owned") is None


def test_no_foreign_page_frames_the_hub(page: Any, hub: Hub) -> None:
    page.goto(f"{hub.url}/static/icon.svg")
    page.goto("about:blank")
    page.set_content(f"<iframe src='{hub.browser_url}/runs/'></iframe>")
    frame = page.frames[1]
    eventually(lambda: frame.url.startswith("chrome-error:"), what="the frame stays empty")


def test_figures_of_all_kinds_are_drawn_in_their_frames(page: Any, figures: Logged) -> None:
    """Plotly's strict build: the other one makes code from text for four of these kinds."""
    page.set_default_timeout(120_000)  # some are drawn by a graphics card that a processor plays
    page.goto(f"/runs/{figures.number}/outputs/?file=plane.json")
    address = page.locator(".ar-figure").get_attribute("src")
    frame = page.frame_locator(".ar-figure")
    frame.locator(".main-svg").first.wait_for()
    for name, traces in figures_of_kinds().items():
        page.goto(address.replace("plane.json", f"{quote(name)}.json"))
        page.locator("#figure .main-svg").first.wait_for()
        assert "cannot be drawn" not in page.locator("#figure").inner_text(), name
        drawn = "element => element._fullData.map(trace => trace.type)"
        assert page.locator("#figure").evaluate(drawn) == list(traces), name


def test_a_chart_of_ours_has_a_modebar_and_is_kept_as_an_image(page: Any) -> None:
    """What people may do with any chart, on a page of ours: no violation, and the layout that Plotly's own
    rules give."""
    page.goto("/")
    drawn = """async () => {
        const { loadFullPlotly } = await import("/static/js/charts/plotly.js");
        const Plotly = await loadFullPlotly();
        const place = document.createElement("div");
        document.querySelector("main").append(place);
        await Plotly.newPlot(place, [{ type: "TYPE", y: [1, 3, 2], x: [1, 2, 3] }], { height: 200 },
            { displayModeBar: true });
        const image = await Plotly.toImage(place, { format: "png", width: 300, height: 200 });
        const { position } = getComputedStyle(place.querySelector(".main-svg"));
        return [position, Boolean(place.querySelector(".modebar-btn")), image.slice(0, 15)];
    }"""
    for kind in ("scatter", "scattergl", "bar", "box"):
        assert page.evaluate(drawn.replace("TYPE", kind)) == ["absolute", True, "data:image/png;"]
    with page.expect_download() as kept:
        page.locator(".modebar-btn[data-title^='Download']").last.click()
    assert kept.value.suggested_filename.endswith(".png")
