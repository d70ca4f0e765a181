"""Measures pages, searches and a purge of the filled hub of the environment: a process of its own, started by
bench.large_history."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

import psycopg  # noqa: E402 - only now are the settings there
from django.test import Client  # noqa: E402

from bench.support.limits import Limits, median  # noqa: E402
from bench.support.stack import ROOT  # noqa: E402
from jobs.models import Run, RunEvent  # noqa: E402
from tracking.search import find_runs  # noqa: E402
from workspaces.models import User, Workspace  # noqa: E402

TIMES = 5
MAX_PAGE_S, MAX_SEARCH_S, MAX_PAUSE_S = 1.0, 0.15, 1.0
# A search to a bare query by psycopg of the newest fifty runs, in the same run.
MAX_SEARCH_RATIO = 150.0
PURGE_S = 20.0
WORKSPACE, PERSON = "team-0", "person-0"
PURGE = "from jobs.retention.run_purge import purge_due; print(purge_due(lambda run: None, max_s={max_s}))"
BARE = (
    "SELECT * FROM jobs_run WHERE workspace_id = %s AND deleted_at IS NULL ORDER BY created_at DESC LIMIT 50"
)
Query = Mapping[str, object]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("pages", "purge"))
    limits = Limits()
    {"pages": _measure_pages, "purge": _measure_purge}[parser.parse_args().part](limits)
    return limits.exit_code()


def _client() -> Client:
    client = Client()
    client.force_login(User.objects.get(username=PERSON))
    return client


def _samples(workspace: Workspace) -> tuple[Run, Run]:
    """Returns the newest run that is over, and one in the middle of the history."""
    over = Run.objects.for_workspace(workspace).listed().filter(state="Completed").order_by("-number")
    newest = over[0]
    return newest, over.filter(number__lt=newest.number // 2)[0]


def _measure_pages(limits: Limits) -> None:
    client, workspace = _client(), Workspace.objects.get(slug=WORKSPACE)
    newest, middle = _samples(workspace)
    for path, query in _pages(newest, middle):
        seconds = _measure(f"{path}?{_words(query)}", partial(_get, client, path, query))
        limits.at_most(f"seconds of {path}?{_words(query)}", seconds, MAX_PAGE_S)
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        bare_s = _measure(
            "a bare query of the newest runs",
            lambda: connection.execute(BARE, [workspace.pk]).fetchall(),
        )
    for text in _texts(middle):
        seconds = _measure(f"search: {text}", partial(_get, client, "/search/", {"q": text}))
        limits.at_most(f"seconds of the search for {text}", seconds, MAX_SEARCH_S)
    for text in _filters(middle):
        seconds = _measure(f"filter: {text}", partial(find_runs, workspace, text=text, limit=51))
        limits.at_most(f"seconds of the filter {text}", seconds, MAX_SEARCH_S)
        limits.at_most(f"the filter {text} to the bare query", seconds / bare_s, MAX_SEARCH_RATIO)


def _pages(newest: Run, middle: Run) -> list[tuple[str, Query]]:
    orders = (
        "number DESC",
        "submitted",
        "end_time DESC",
        "metrics.acc DESC",
        "min(metrics.loss)",
        "params.lr",
        "params.opt",
        "tags.team",
        "run_name",
        "duration DESC",
    )
    return [
        ("/", {}),
        ("/runs/", {}),
        ("/runs/", {"page": 1000}),
        *(("/runs/", {"state": state}) for state in ("active", "failed", "canceled")),
        ("/runs/", {"mine": 1}),
        *(("/runs/", {"view": view}) for view in ("archived", "deleted")),
        ("/runs/", {"experiment": "experiment-0"}),
        ("/runs/", {"experiment": "experiment-150", "order": "metrics.acc DESC"}),
        ("/runs/", {"q": middle.display_name}),
        ("/runs/", {"q": middle.number}),
        ("/runs/", {"q": "llama"}),
        *(("/runs/", {"order": order}) for order in orders),
        ("/runs/", {"column": ["metrics.acc", "metrics.loss", "params.lr", "tags.team", "gpu_hours"]}),
        ("/runs/", {"filter": "metrics.acc > 0.5 AND params.opt = 'adam'", "order": "metrics.val_acc DESC"}),
        ("/experiments/", {}),
        (f"/runs/{newest.number}/", {}),
        (f"/runs/{newest.number}/metrics/", {}),
        (f"/runs/{newest.number}/outputs/", {}),
        ("/compare/", {"runs": f"{newest.number},{middle.number}"}),
        ("/models/", {}),
        ("/quotas/", {}),
        ("/audit/", {}),
        ("/runs/deleted/", {}),
    ]


def _texts(middle: Run) -> list[object]:
    return ["llama", middle.display_name, middle.display_name[-6:], middle.number, "nothing-like-it", "zq"]


def _filters(middle: Run) -> list[str]:
    return [
        f"run_name = '{middle.display_name}'",
        f"run_name LIKE '%{middle.display_name[-6:]}%'",
        "run_name ILIKE '%LLAMA%'",
        f"number = {middle.number}",
        "tags.team = 'speech'",
        "tags.week = '7'",
        "tags.team = 'nobody'",
        "params.opt = 'adam'",
        "params.lr < 0.0002",
        f"params.note = 'run of the {middle.number}th kind'",
        "metrics.acc > 0.5 AND metrics.loss < 0.5",
        "metrics.acc > 0.9999",
        "user_id = 'person-0'",
        "user_id = 'person-250'",
        "user_id = 'nobody'",
        "experiment = 'experiment-7'",
        "cluster = 'nowhere'",
        "state = 'Failed'",
        "end_time > '1d ago'",
    ]


def _measure_purge(limits: Limits) -> None:
    """Loads a page and writes a row again and again while another process purges, and before."""
    client, workspace = _client(), Workspace.objects.get(slug=WORKSPACE)
    newest, _ = _samples(workspace)
    _longest(client, newest, lambda took_s: took_s < 3.0)  # warm
    alone = _longest(client, newest, lambda took_s: took_s < PURGE_S / 2)
    command = [sys.executable, "manage.py", "shell", "-c", PURGE.format(max_s=PURGE_S)]
    purge = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    started = time.monotonic()
    beside = _longest(client, newest, lambda _: purge.poll() is None)
    took = time.monotonic() - started
    assert purge.stdout is not None
    count = int(purge.stdout.read().split()[-1])
    if not count:
        raise RuntimeError("nothing was purged: the hub has no deleted runs any more")
    print(f"{count} runs are purged in {took:.0f} s, {took / count * 1e3:.0f} ms each")
    for name in alone:
        print(f"the longest {name}: {alone[name] * 1e3:.0f} ms alone, {beside[name] * 1e3:.0f} ms beside it")
        limits.at_most(f"seconds of the longest {name} beside a purge", beside[name], MAX_PAUSE_S)


def _longest(client: Client, run: Run, goes_on: Callable[[float], bool]) -> dict[str, float]:
    """Returns the seconds of the longest load of a page, and of the longest write, as long as it goes on."""
    longest, begin = {"page": 0.0, "write": 0.0}, time.monotonic()
    while goes_on(time.monotonic() - begin):
        for name, act in (
            ("page", partial(_get, client, "/runs/", {})),
            ("write", partial(RunEvent.objects.create, run=run, message="bench")),
        ):
            started = time.perf_counter()
            act()
            longest[name] = max(longest[name], time.perf_counter() - started)
    return longest


def _get(client: Client, path: str, query: Query) -> None:
    answer = client.get(f"{path}?{urlencode(query, doseq=True)}")
    if answer.status_code != 200:
        raise RuntimeError(f"{path}?{_words(query)}: status {answer.status_code}")


def _words(query: Query) -> str:
    return "&".join(f"{name}={value}" for name, value in query.items())


def _measure(name: str, act: Callable[[], object]) -> float:
    """Returns the median in seconds."""
    seconds = []
    for _ in range(TIMES):
        started = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - started)
    print(f"  {name:<70} {median(seconds) * 1e3:7.1f} ms, first {seconds[0] * 1e3:7.1f} ms", flush=True)
    return median(seconds)


if __name__ == "__main__":
    sys.exit(main())
