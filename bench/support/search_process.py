"""Measures finding among many runs in the database of the environment: a process of its own, started by
bench.runs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from django.test import Client  # noqa: E402 - only now are the models there

from bench.support.limits import Limits  # noqa: E402
from bench.support.run_filler import analyze, fill  # noqa: E402
from tracking.search import find_runs  # noqa: E402
from workspaces.models import Membership, User, Workspace  # noqa: E402

TIMES = 7
# A search over all runs to reading the newest one.
MAX_SEARCH_RATIO = 60.0
ASKED: tuple[tuple[str, str, str], ...] = (
    ("metric and param, by the metric", "metrics.acc > 0.5 AND params.opt = 'adam'", "metrics.acc DESC"),
    (
        "metric and param, by another metric",
        "metrics.acc > 0.5 AND params.opt = 'adam'",
        "metrics.val_acc DESC",
    ),
    ("two metrics, by a third", "metrics.acc > 0.5 AND metrics.loss < 0.5", "metrics.val_acc"),
    ("few match, by a metric", "metrics.acc > 0.9999 AND params.opt = 'adam'", "metrics.acc DESC"),
    ("none matches", "metrics.acc > 0.5 AND params.opt = 'none'", "metrics.acc DESC"),
    (
        "OR, NOT, least",
        "NOT params.opt = 'adam' AND (metrics.acc > 0.5 OR min(metrics.loss) < 0.1)",
        "metrics.acc DESC",
    ),
    ("number of a param", "params.depth > 40 AND params.lr < 0.001", "metrics.acc DESC"),
    ("LIKE", "params.note LIKE '%99%'", "metrics.acc DESC"),
    ("no filter, by a metric", "", "metrics.acc DESC"),
    ("no filter, newest", "", ""),
)
PAGES: tuple[tuple[str, dict[str, object]], ...] = (
    ("page: newest", {}),
    (
        "page: filtered, by a metric",
        {"filter": "metrics.acc > 0.5 AND params.opt = 'adam'", "order": "metrics.acc DESC"},
    ),
    (
        "page: grouped",
        {"filter": "metrics.acc > 0.9", "group": ["params.opt", "params.lr"], "column": ["metrics.acc"]},
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    workspace, _ = Workspace.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    user, _ = User.objects.get_or_create(username="bench")
    Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": "owner"})
    started = time.perf_counter()
    fill(runs, workspace, user=user)
    analyze()
    print(f"  {runs} runs filled in {time.perf_counter() - started:.0f} s")
    limits = Limits()
    newest_s = _measure("no filter, newest, one run", partial(find_runs, workspace, text="", limit=1))
    for name, text, order in ASKED:
        took_s = _measure(
            name, partial(find_runs, workspace, text=text, order_by=[order] if order else [], limit=50)
        )
        limits.at_most(f"{name} to the newest run", took_s / newest_s, MAX_SEARCH_RATIO)
    client = Client()
    client.force_login(user)
    for name, asked in PAGES:
        _measure(name, partial(client.get, f"/runs/?{urlencode(asked, doseq=True)}"))
    return limits.exit_code()


def _measure(name: str, act: Callable[[], object]) -> float:
    """Returns the median in seconds."""
    took = []
    for _ in range(TIMES):
        started = time.perf_counter()
        act()
        took.append(time.perf_counter() - started)
    middle = sorted(took)[TIMES // 2]
    print(f"  {name:<36} median {sorted(took)[TIMES // 2] * 1e3:7.1f} ms   first {took[0] * 1e3:7.1f} ms")
    return middle


if __name__ == "__main__":
    sys.exit(main())
