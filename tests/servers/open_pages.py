"""Pages in a browser that stay open while the servers behind the proxy die in turn."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from typing import Any

from simulator import Scenario
from simulator.models import h100
from tests.hub import eventually
from tests.servers.cluster import ServerCluster
from tests.servers.load import Load
from tests.signing_in import sign_in

WINDOW = {"width": 1440, "height": 1000}
# A matter of a second or two, except on a machine that is as busy as tests make it.
PATIENCE_S = 60.0
# Collects what the viewer shows, from its first line to its last: number -> text. A line that is shown with
# two texts gets two numbers.
READ_LOG = """async () => {
  const box = document.querySelector('.log-scroller'), read = {};
  const frame = () => new Promise(requestAnimationFrame);
  for (let top = 0; ; top += box.clientHeight / 2) {
    box.scrollTop = top;
    await frame();
    await frame();
    for (const row of document.querySelectorAll('.log-row')) {
      const [number, text] = [...row.children].map((part) => part.textContent);
      read[number in read && read[number] !== text ? `${number} again` : number] = text;
    }
    if (top >= box.scrollHeight) return read;
  }
}"""

LOG_FACTS = """() => ({
  live: document.documentElement.dataset.live,
  follow: document.querySelector('[data-part=follow]').getAttribute('aria-pressed'),
  state: document.querySelector('[data-part=state]').textContent,
  paused: document.querySelector('[data-part=paused]').textContent,
  lines: [...document.querySelectorAll('.log-number')].map((item) => item.textContent).join(' '),
  requests: performance.getEntriesByType('resource').slice(-12).map((item) =>
    [item.name.slice(-60), Math.round(item.startTime), Math.round(item.duration), item.responseStatus]),
  now: performance.now(),
})"""


class OpenPages:
    """The log of a run that lasts, the charts of a GPU and the history, each opened once. `check_going_on`
    while a server is dead, `check_whole` once all are back and all runs have ended."""

    def __init__(self, browser: Any, cluster: ServerCluster, load: Load) -> None:
        self._load = load
        self._gpu = h100("page")
        # A second try of the test has the same cluster, and a node of its own in it.
        name = f"with-gpu-{len(cluster.agents)}"
        self._node = cluster.add_agent(name, world=Scenario([self._gpu]))
        eventually(lambda: self._node.name in cluster.ready_nodes(), 60, "the node with a GPU is ready")
        # It lasts until somebody lets it end.
        self._run = load.submit(10**6)
        number = load.facts(self._run)["number"]
        self._context = browser.new_context(
            base_url=cluster.hub.browser_url, viewport=WINDOW, storage_state=sign_in(browser, cluster.hub)
        )
        self._documents: Counter[str] = Counter()
        self.log = self._open(f"/runs/{number}/logs/")
        self.charts = self._open(f"/nodes/{self._node.name}/")
        self.history = self._open("/runs/")
        self._celsius = itertools.cycle(range(40, 80))
        self.check_going_on()

    def close(self) -> None:
        self._context.close()
        self._node.stop()

    def check_going_on(self) -> None:
        """The log grows, the charts move and a new run appears."""
        before = self._last_number()
        celsius = next(self._celsius)
        self._gpu.values["temperature_c"] = celsius
        self._node.show()
        new = self._load.facts(self._load.submit(1))["number"]
        try:
            eventually(lambda: self._last_number() > before, PATIENCE_S, "the log goes on")
        except AssertionError as error:
            error.add_note(f"the hub has {len(self._load.log(self._run))} bytes, and the page says:")
            error.add_note(self.log.locator("main").inner_text())
            error.add_note(str(self.log.evaluate(LOG_FACTS)))
            raise
        read = self.charts.locator("figure", has=self.charts.locator(".ch-title:text-is('Temperature')"))
        eventually(
            lambda: read.locator(".ch-read").inner_text() == f"{celsius} °C", PATIENCE_S, "the charts go on"
        )
        row = self.history.locator(f"#run-rows a[href^='/runs/{new}/']")
        eventually(lambda: row.count() > 0, PATIENCE_S, f"run {new} appears")

    def check_whole(self) -> None:
        """Each line of the log is there once and in order; no page was loaded again or says that it has lost
        the hub, and the person is signed in."""
        state = self.log.locator("[data-part=state]")
        eventually(lambda: "complete" in state.inner_text(), PATIENCE_S, "the log is complete")
        read = self.log.evaluate(READ_LOG)
        lines = self._load.log(self._run).decode().splitlines()
        assert read == {str(number): line for number, line in enumerate(lines, 1)}
        for tab in (self.log, self.charts, self.history):
            eventually(partial(self._is_live, tab), PATIENCE_S, f"{tab.url} is live")
        assert set(self._documents.values()) == {1}, f"loaded again: {self._documents}"
        again = self._context.new_page()
        again.goto("/runs/")
        assert again.url.endswith("/runs/"), "the person was signed out"

    def _open(self, path: str) -> Any:
        tab = self._context.new_page()
        tab.on("domcontentloaded", lambda: self._documents.update([path]))
        tab.goto(path)
        return tab

    def _last_number(self) -> int:
        """Of the lowest line in view; the viewer follows the log."""
        text = self.log.evaluate("[...document.querySelectorAll('.log-number')].at(-1)?.textContent ?? '0'")
        return int(text.replace(",", ""))

    def _is_live(self, tab: Any) -> bool:
        is_lost = tab.evaluate("document.documentElement.dataset.live === 'lost'")
        return not is_lost and not tab.locator("text=could not be").count()
