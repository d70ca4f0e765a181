"""Runs axe-core, which finds faults that keep people with a screen reader, a keyboard or weak eyes out, on
the page that a browser shows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

# Rules that axe leaves out unless they are named.
EXTRA_RULES = ("target-size", "label-content-name-mismatch")
# All that a theme can change, but "color-contrast", which has a script of its own.
COLOR_RULES = ("link-in-text-block",)
MAX_SHOWN = 6
RUN = """async (options) => {
  // Frames have no axe, and each would be waited for.
  const { violations } = await axe.run(document, { ...options, resultTypes: ["violations"], iframes: false });
  return violations;
}"""
_passed: set[int] = set()
"""Looks of texts that have passed the rule of contrast; contrast.js describes them."""


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


@cache
def _contrast_script() -> str:
    return Path(__file__).with_name("contrast.js").read_text()


def faults(page: Any, *, colors_only: bool = False) -> list[str]:
    """Returns one text for each rule that the page breaks, with the elements that break it."""
    # Evaluated by the debugger, which the content security policy does not concern.
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_source())
    if colors_only:
        options: dict[str, Any] = {"runOnly": {"type": "rule", "values": list(COLOR_RULES)}}
    else:
        rules = {rule: {"enabled": True} for rule in EXTRA_RULES}
        options = {"rules": {**rules, "color-contrast": {"enabled": False}}}
    violations = page.evaluate(RUN, options)
    contrast = page.evaluate(_contrast_script(), list(_passed))
    _passed.update(contrast["hashes"])
    return [_text(violation) for violation in violations + contrast["violations"]]


def _text(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    shown = [
        f"    {', '.join(map(str, node['target']))}\n      {node['html'][:200]}\n      {_reason(node)}"
        for node in nodes[:MAX_SHOWN]
    ]
    return f"{violation['id']} ({violation['impact']}, {len(nodes)}): {violation['help']}\n" + "\n".join(
        shown
    )


def _reason(node: dict[str, Any]) -> str:
    """Returns what is wrong with an element, without the sentence that introduces it."""
    return " ".join(node["failureSummary"].split("\n")[1:]).strip()[:300]
