"""The tests with axe-core find faults that only one width or theme has, in a page that is opened once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.accessibility.axe import faults

pytestmark = pytest.mark.browser
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PAGE = """<!doctype html><html lang="en"><head><title>Page</title><style>
  :root { color-scheme: light dark; }
  body { background: Canvas; color: CanvasText; }
  button { width: 40px; height: 40px; padding: 0; border: 0; }
  STYLE
</style></head><body><main><h1>Page</h1><p>Enough contrast</p><p>And here</p>
<button>One</button><button>Two</button>BODY</main></body></html>"""
CASES = {
    "a colour on a phone in the dark": (
        "@media (width < 600px) and (prefers-color-scheme: dark) { p { color: #444; } }",
        "",
        {"phone dark": ["color-contrast"]},
    ),
    "a colour on a wide screen in the light": (
        "@media (width > 600px) and (prefers-color-scheme: light) { p { color: #bbb; } }",
        "",
        {"wide light": ["color-contrast"]},
    ),
    "a size on a phone": (
        "@media (width < 600px) { button { width: 9px; height: 9px; } }",
        "",
        {"phone light": ["target-size"]},
    ),
    "a field without a label": (
        "",
        "<input type=text>",
        {"wide light": ["label"], "phone light": ["label"]},
    ),
    "a button without a name, on a phone": (
        ".on-phones { display: none; } @media (width < 600px) { .on-phones { display: inline-block; } }",
        "<button class=on-phones></button>",
        {"phone light": ["button-name"]},
    ),
}


def rules_of(tab: Any, *, colors_only: bool) -> list[str]:
    return sorted(fault.split(" ")[0] for fault in faults(tab, colors_only=colors_only))


def all_faults(tab: Any, html: str) -> dict[str, list[str]]:
    """Returns the rules that the page breaks, by width and theme."""
    tab.set_content(html)
    broken = {}
    for width, size in (("wide", WIDE), ("phone", PHONE)):
        tab.set_viewport_size(size)
        for theme in ("light", "dark"):
            tab.emulate_media(color_scheme=theme)
            broken[f"{width} {theme}"] = rules_of(tab, colors_only=theme == "dark")
    return {place: rules for place, rules in broken.items() if rules}


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """A tab in which a page without a fault has been looked at."""
    made = browser.new_page(viewport=WIDE)
    assert all_faults(made, PAGE.replace("STYLE", "").replace("BODY", "")) == {}
    yield made
    made.context.close()


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_found_at_its_width_and_in_its_theme(case: str, tab: Any) -> None:
    style, body, expected = CASES[case]
    assert all_faults(tab, PAGE.replace("STYLE", style).replace("BODY", body)) == expected
