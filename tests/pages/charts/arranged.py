"""What tests in a browser ask of arranged panels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged


def arrange(hub: Hub, experiment: str, *panels: Mapping[str, object]) -> None:
    address = f"/api/v1/experiments/{experiment}/panels/"
    with hub.client() as client:
        revision = client.get(address).raise_for_status().json()["revision"]
        body = {"panels": list(panels), "revision": revision}
        client.put(address, json=body).raise_for_status()


def stored(hub: Hub, experiment: str) -> list[dict[str, Any]]:
    panels = hub.client().get(f"/api/v1/experiments/{experiment}/panels/").raise_for_status().json()["panels"]
    return list(panels)


def opened(tab: Any, run: Logged, query: str = "") -> Any:
    tab.goto(f"/runs/{run.number}/metrics/{query}")
    tab.wait_for_selector(".cv-chart .main-svg")
    return tab


def titles(tab: Any) -> list[str]:
    return list(tab.locator(".cv-panel .ch-title").all_inner_texts())


def panel(tab: Any, title: str) -> Any:
    return tab.locator(".cv-panel", has=tab.locator(".ch-title", has_text=title))


def act(tab: Any, title: str, name: str) -> None:
    """Choose an entry of a panel's menu."""
    tab.get_by_label(f"Options of {title}").click()
    panel(tab, title).get_by_role("button", name=name, exact=True).click()


def lines(chart: Any) -> list[dict[str, Any]]:
    code = """element => (element.querySelector('.ch-drawing').data ?? []).map(
        ({ x, y, line }) => ({ x: [...x], y: [...y], color: line?.color, dash: line?.dash }))"""
    return list(eventually(lambda: chart.evaluate(code), what="the chart is drawn"))


def x_axis(chart: Any) -> tuple[float, float]:
    lines(chart)
    low, high = chart.evaluate("element => element.querySelector('.ch-drawing').layout.xaxis.range")
    return low, high


def texts_in(chart: Any) -> list[str]:
    """Titles of the axes and labels of events."""
    lines(chart)
    code = "element => element.querySelector('.ch-drawing').layout.annotations.map(({ text }) => text)"
    return list(chart.evaluate(code))


def drag_over(tab: Any, chart: Any, start: float, end: float) -> None:
    """Choose a part of a chart's width, from and to shares of its axis."""
    place = chart.locator(".ch-plot")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    left, width, middle = box["x"] + 56, box["width"] - 66, box["y"] + box["height"] / 2
    tab.mouse.move(left + width * start, middle)
    tab.mouse.down()
    tab.mouse.move(left + width * end, middle, steps=6)
    tab.mouse.up()
