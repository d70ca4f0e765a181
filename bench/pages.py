"""What a browser loads and shows for each page, with an empty cache: bytes, requests, times, layout shift.
At the end the table of runs, with many runs behind it.

Bytes, requests and layout shift have limits of their own. Times depend on the machine: they are judged by
their ratio to the content or the readiness of the page for signing in, loaded in the same run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from bench.charts import fill_telemetry
from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack
from tests.harness import chromium

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
# The table of runs with MANY_RUNS behind it.
MANY = (
    "/runs/",
    "/runs/?order=metrics.val_acc%20DESC",
    "/runs/?order=duration%20DESC",
    "/runs/?filter=metrics.acc%20%3E%200.5%20AND%20params.opt%20%3D%20%27adam%27&order=metrics.val_acc",
    "/runs/?group=params.opt&group=params.lr&column=metrics.acc",
)
MANY_RUNS = 100_000
# Times the content of the page for signing in, which takes 0.18 s on the machine of docs/benchmarks.md: a
# chart has 0.7 s, a task 0.2 s.
MAX_CONTENT, MAX_CHART, MAX_TASK = 4.0, 3.9, 1.1
# Times the readiness of that page, about the same: a second.
MAX_READY = 5.5
SETTLED_MS = 2500
CHART = ".main-svg, .ch-heat canvas:not([hidden])"
# Runs in the page before its own scripts.
OBSERVE = """
window.seen = { content: 0, shift: 0, task: 0, chart: 0, ready: 0 };
// After the page's modules: from now on it reacts to clicks and keys.
addEventListener("DOMContentLoaded", () => setTimeout(() => (seen.ready = performance.now())));
new PerformanceObserver((list) => { for (const entry of list.getEntries()) seen.content = entry.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) seen.task = Math.max(seen.task, entry.duration);
}).observe({ type: "longtask", buffered: true });
new MutationObserver(() => {
  if (seen.chart || !document.querySelector(CHART)) return;
  seen.chart = performance.now();
}).observe(document, { childList: true, subtree: true });
"""


@dataclass(frozen=True)
class Load:
    """One load of a page. Times in milliseconds; `ready`: until it reacts to clicks and keys; `chart` 0: no
    chart was drawn."""

    kb: float
    requests: int
    content: float
    ready: float
    chart: float
    task: float
    shift: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="in the history behind the pages")
    parser.add_argument("--many", type=int, default=MANY_RUNS, help="runs behind the table; 0: leave it out")
    parser.add_argument("--loads", type=int, default=5, help="of each page")
    options = parser.parse_args()
    limits = Limits()
    with stack() as hub, browser() as launched:
        fill_telemetry(hub, nodes=1)
        cookie = _prepare(hub)
        _fill_runs(hub, options.runs)
        bare = _loads(launched, hub, SIGN_IN, None, options.loads)
        _show(SIGN_IN, bare)
        for path in (*PLAIN, *WITH_PLOTS):
            loads = _loads(launched, hub, path, cookie, options.loads)
            _show(path, loads)
            _judge(limits, path, loads, bare)
        if options.many:
            _fill_runs(hub, options.many - options.runs)
        for path in MANY if options.many else ():
            loads = _loads(launched, hub, path, cookie, options.loads)
            _show(path, loads)
            ratio = _ratio(loads, bare, "ready")
            limits.at_most(f"{path} of {options.many:,}: ready, beside signing in", ratio, MAX_READY)
    sys.exit(limits.exit_code())


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = chromium.launch(playwright)
        yield launched
        launched.close()


def _prepare(hub: Stack) -> dict[str, str]:
    """Lets the node of the telemetry appear as connected, without which its cluster has no heat map. Returns
    the cookie of a signed-in administrator."""
    code = """
from datetime import timedelta
from django.conf import settings
from django.test import Client
from django.utils import timezone
from clusters.models import Node
from workspaces.models import User
Node.objects.filter(cluster__name="bench").update(last_report_at=timezone.now() + timedelta(days=1))
client = Client()
client.force_login(User.objects.order_by("pk").first())
print("COOKIE", settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
"""
    name, value = hub.shell(code).partition("COOKIE ")[2].split()
    return {"name": name, "value": value, "url": hub.url}


def _fill_runs(hub: Stack, count: int) -> None:
    code = f"""
from bench.support.run_filler import analyze, fill
from workspaces.models import User, Workspace
fill({count}, Workspace.objects.first(), user=User.objects.order_by("pk").first(), seed={count})
analyze()
"""
    hub.shell(code)


def _loads(launched: Browser, hub: Stack, path: str, cookie: dict[str, str] | None, count: int) -> list[Load]:
    loads = []
    for _ in range(count):
        # A context of its own has an empty cache.
        context = launched.new_context(viewport={"width": 1440, "height": 900})
        if cookie:
            context.add_cookies([cookie])  # type: ignore[list-item]
        loads.append(_load(context, hub.url + path, has_plots=path in WITH_PLOTS))
        context.close()
    return loads


def _load(context: BrowserContext, url: str, *, has_plots: bool) -> Load:
    page = context.new_page()
    page.add_init_script(f"const CHART = {CHART!r};{OBSERVE}")
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(url, wait_until="load")
    if has_plots:
        page.wait_for_selector(CHART)
    page.wait_for_timeout(SETTLED_MS)
    seen: dict[str, Any] = page.evaluate("seen")
    return Load(sum(sizes) / 1e3, len(sizes), **seen)


def _show(path: str, loads: list[Load]) -> None:
    one = loads[-1]
    content, ready, chart, task = (_median(loads, name) for name in ("content", "ready", "chart", "task"))
    print(
        f"{path:20} {one.kb:6.0f} kB {one.requests:3} requests, content {content:5.0f} ms, "
        f"ready {ready:5.0f} ms, first chart {chart:5.0f} ms, longest task {task:4.0f} ms, "
        f"layout shift {one.shift:.3f}",
        flush=True,
    )


def _judge(limits: Limits, path: str, loads: list[Load], bare: list[Load]) -> None:
    one, has_plots = loads[-1], path in WITH_PLOTS
    limits.at_most(f"{path}: kB", one.kb, MAX_KB[has_plots])
    if not has_plots:
        limits.at_most(f"{path}: requests", one.requests, MAX_REQUESTS)
    limits.at_most(f"{path}: layout shift", max(load.shift for load in loads), MAX_SHIFT)
    limits.at_most(f"{path}: content, beside signing in", _ratio(loads, bare, "content"), MAX_CONTENT)
    task = _median(loads, "task") / _median(bare, "content")
    limits.at_most(f"{path}: longest task, beside the content of signing in", task, MAX_TASK)
    if has_plots:
        chart = _median(loads, "chart") / _median(bare, "content")
        limits.at_most(f"{path}: first chart, beside the content of signing in", chart, MAX_CHART)


def _median(loads: list[Load], name: str) -> float:
    return median([getattr(load, name) for load in loads])


def _ratio(loads: list[Load], bare: list[Load], name: str) -> float:
    return _median(loads, name) / _median(bare, name)


if __name__ == "__main__":
    main()
