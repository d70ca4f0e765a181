"""A browser that remembers each violation of a page's content security policy, so that every test in it can
refuse them."""

from __future__ import annotations

from typing import Any

from tests.hub import eventually

NAVIGATION_TIMEOUT_MS = 90_000
RECORD = """addEventListener("securitypolicyviolation", (event) => {
  const { effectiveDirective, blockedURI, sourceFile, lineNumber, sample, documentURI } = event;
  const place = `${documentURI} (${sourceFile}:${lineNumber})`;
  window.reportPolicyViolation(`${effectiveDirective} refused ${blockedURI} on ${place} ${sample}`);
}, true);"""


class WatchedBrowser:
    """A Playwright browser whose pages report violations to `violations`; a test that provokes one takes it
    from there."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self._contexts: list[Any] = []
        self.violations: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def new_context(self, **options: Any) -> Any:
        context = self._plain.new_context(**options)
        context.expose_binding("reportPolicyViolation", lambda _, text: self.violations.append(text))
        context.add_init_script(RECORD)
        # A page of many charts takes long beside others on a busy machine.
        context.set_default_navigation_timeout(NAVIGATION_TIMEOUT_MS)
        self._contexts.append(context)
        context.on("close", self._forget)
        return context

    def new_page(self, **options: Any) -> Any:
        return self.new_context(**options).new_page()

    def _forget(self, context: Any) -> None:
        self._contexts.remove(context)

    def take_violations(self) -> list[str]:
        """All since the last time, once every open page has told its own."""
        for context in self._contexts:
            for tab in context.pages:
                tab.evaluate("0")
        taken, self.violations = self.violations, []
        return taken


def wait_until(page: Any, script: str, arg: Any = None, *, timeout: float = 30_000) -> None:
    """Wait until `script` is true on the page. Playwright's own wait_for_function asks by eval, which the
    policy refuses.

    `timeout`: in milliseconds.
    """
    eventually(lambda: page.evaluate(script, arg), timeout / 1000, script)
