"""What tests in a browser ask of the charts of metrics."""

from __future__ import annotations

from typing import Any

from tests.hub import eventually


def address(page: Any) -> str:
    """As it is now: Playwright's own lags behind what a script has written there."""
    return str(page.evaluate("location.href"))


def chart(page: Any, key: str) -> Any:
    return page.locator(f".cv-chart[data-key='{key}']")


def drawn(page: Any, key: str) -> list[dict[str, Any]]:
    """The traces of a chart: x, y, colour, width, mode, and the axis they lie on; waits for them."""
    code = """element => {
      const traces = element.querySelector('.ch-drawing').data ?? [];
      return traces.map(({ x, y, line, mode, yaxis, fill }) => ({
        x: [...x], y: [...y], color: line?.color, width: line?.width, dash: line?.dash, mode, yaxis, fill
      }));
    }"""
    return list(eventually(lambda: chart(page, key).evaluate(code), what=f"{key} is drawn"))


def axes(page: Any, key: str) -> dict[str, Any]:
    """Kind and range of both axes."""
    code = """element => { const { xaxis, yaxis } = element.querySelector('.ch-drawing').layout;
        return { x: xaxis.type, y: yaxis.type, range: [...xaxis.range] } }"""
    drawn(page, key)
    return dict(chart(page, key).evaluate(code))


def drag(page: Any, key: str, start: float, end: float) -> None:
    """Choose a part of a chart's width, from and to shares of its axis."""
    place = chart(page, key).locator(".ch-plot")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    left, width = box["x"] + 56, box["width"] - 66
    middle = box["y"] + box["height"] / 2
    page.mouse.move(left + width * start, middle)
    page.mouse.down()
    page.mouse.move(left + width * (start + end) / 2, middle, steps=4)
    page.mouse.move(left + width * end, middle, steps=4)
    page.mouse.up()
