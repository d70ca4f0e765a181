"""What a browser loads and shows for each page, with an empty cache: bytes, requests, times, layout shift.

Bytes, requests and layout shift have limits of their own. Times depend on the machine: they are judged by
their ratio to the page for signing in, loaded in the same run."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from bench.charts import fill_telemetry
from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack

PLAIN = (
    "/",
    "/runs/",
    "/runs/new/",
    "/experiments/",
    "/clusters/",
    "/alerts/",
    "/models/",
    "/usage/",
    "/settings/",
)
WITH_PLOTS = ("/clusters/bench/", "/nodes/bench-0/")
SIGN_IN = "/sign-in/"
MAX_KB = {False: 150.0, True: 750.0}
MAX_REQUESTS, MAX_SHIFT = 12, 0.05
# Times the first content of the page for signing in.
MAX_CONTENT = 4.0
SETTLED_MS = 2500
# Runs in the page before its own scripts.
OBSERVE = """
window.seen = { content: 0, shift: 0, task: 0, chart: 0 };
new PerformanceObserver((list) => { for (const entry of list.getEntries()) seen.content = entry.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) seen.task = Math.max(seen.task, entry.duration);
}).observe({ type: "longtask", buffered: true });
new MutationObserver(() => {
  if (!seen.chart && document.querySelector(".main-svg")) seen.chart = performance.now();
}).observe(document, { childList: true, subtree: true });
"""


@dataclass(frozen=True)
class Load:
    """One load of a page. Times in milliseconds; `chart` 0: no chart was drawn."""

    kb: float
    requests: int
    content: float
    chart: float
    task: float
    shift: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="in the history behind the pages")
    parser.add_argument("--loads", type=int, default=5, help="of each page")
    options = parser.parse_args()
    limits = Limits()
    with stack() as hub, browser() as chromium:
        fill_telemetry(hub, nodes=1)
        cookie = _prepare(hub, options.runs)
        bare = _loads(chromium, hub, SIGN_IN, None, options.loads)
        _show(SIGN_IN, bare)
        for path in (*PLAIN, *WITH_PLOTS):
            loads = _loads(chromium, hub, path, cookie, options.loads)
            _show(path, loads)
            _judge(limits, path, loads, bare)
    sys.exit(limits.exit_code())


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or None, args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


def _prepare(hub: Stack, runs: int) -> dict[str, str]:
    """Fills the history and returns the cookie of a signed-in administrator."""
    code = f"""
from django.conf import settings
from django.test import Client
from bench.support.run_filler import fill
from workspaces.models import User, Workspace
user = User.objects.order_by("pk").first()
fill({runs}, Workspace.objects.first(), user=user)
client = Client()
client.force_login(user)
print("COOKIE", settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
"""
    name, value = hub.shell(code).partition("COOKIE ")[2].split()
    return {"name": name, "value": value, "url": hub.url}


def _loads(chromium: Browser, hub: Stack, path: str, cookie: dict[str, str] | None, count: int) -> list[Load]:
    loads = []
    for _ in range(count):
        # A context of its own has an empty cache.
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        if cookie:
            context.add_cookies([cookie])  # type: ignore[list-item]
        loads.append(_load(context, hub.url + path))
        context.close()
    return loads


def _load(context: BrowserContext, url: str) -> Load:
    page = context.new_page()
    page.add_init_script(OBSERVE)
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(url, wait_until="load")
    page.wait_for_timeout(SETTLED_MS)
    seen: dict[str, Any] = page.evaluate("seen")
    return Load(sum(sizes) / 1e3, len(sizes), seen["content"], seen["chart"], seen["task"], seen["shift"])


def _show(path: str, loads: list[Load]) -> None:
    one = loads[-1]
    content, chart, task = (
        median([getattr(load, name) for load in loads]) for name in ("content", "chart", "task")
    )
    print(
        f"{path:20} {one.kb:6.0f} kB {one.requests:3} requests, content {content:5.0f} ms, first chart "
        f"{chart:5.0f} ms, longest task {task:4.0f} ms, layout shift {one.shift:.3f}"
    )


def _judge(limits: Limits, path: str, loads: list[Load], bare: list[Load]) -> None:
    one, has_plots = loads[-1], path in WITH_PLOTS
    limits.at_most(f"{path}: kB", one.kb, MAX_KB[has_plots])
    if not has_plots:
        limits.at_most(f"{path}: requests", one.requests, MAX_REQUESTS)
    limits.at_most(f"{path}: layout shift", max(load.shift for load in loads), MAX_SHIFT)
    ratio = median([load.content for load in loads]) / median([load.content for load in bare])
    limits.at_most(f"{path}: content, beside the page for signing in", ratio, MAX_CONTENT)


if __name__ == "__main__":
    main()
