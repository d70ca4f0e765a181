"""Runs axe-core, which finds faults that keep people with a screen reader, a keyboard or weak eyes out, on
the page that a browser shows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

# Rules that axe leaves out unless they are named.
EXTRA_RULES = ("target-size", "label-content-name-mismatch")
# All that a theme can change.
COLOR_RULES = ("color-contrast", "link-in-text-block")
MAX_SHOWN = 6
RUN = """async (options) => {
  // Frames have no axe, and each would be waited for.
  const { violations } = await axe.run(document, { ...options, resultTypes: ["violations"], iframes: false });
  return violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help,
    nodes: nodes.map(({ html, target, failureSummary }) => ({
      html, target: String(target), summary: failureSummary,
    })),
  }));
}"""


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


def faults(page: Any, *, colors_only: bool = False) -> list[str]:
    """Returns one text for each rule that the page breaks, with the elements that break it."""
    # Evaluated by the debugger, which the content security policy does not concern.
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_source())
    if colors_only:
        options: dict[str, Any] = {"runOnly": {"type": "rule", "values": list(COLOR_RULES)}}
    else:
        options = {"rules": {rule: {"enabled": True} for rule in EXTRA_RULES}}
    return [_text(violation) for violation in page.evaluate(RUN, options)]


def _text(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    shown = [
        f"    {node['target']}\n      {node['html'][:200]}\n      {_reason(node['summary'])}"
        for node in nodes[:MAX_SHOWN]
    ]
    return f"{violation['id']} ({violation['impact']}, {len(nodes)}): {violation['help']}\n" + "\n".join(
        shown
    )


def _reason(summary: str) -> str:
    """Returns what is wrong with an element, without the sentence that introduces it."""
    return " ".join(summary.split("\n")[1:]).strip()[:300]
