"""Pages of one workspace beside 49 others: the server's CPU time for each page, with 50 workspaces, 1,000
people and 100,000 runs, divided by that with one workspace of 20 people and 2,000 runs.

The viewed workspace is the same in both databases: the same people, runs, models, history and queue. So a
page shows the same, and the ratio is what the other workspaces cost. Pages for operators that list all
workspaces or people show more rows in the larger database; they are printed without a limit.

Two processes, one for each database, load each page in turns, the order alternating. The database is SQLite,
whose CPU time is part of the server's. A page may take 1.10 times as long: what is judged is the upper end of
the 95 % interval of the geometric mean of the ratios."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.support.limits import Limits
from bench.support.stack import ROOT

OWNER, OPERATOR = "team-0-person-0", "operator"
WORKSPACES, PEOPLE, RUNS = 50, 20, 2_000
MAX_RATIO = 1.10
PAGES = (
    "/",
    "/runs/",
    "/runs/?order=metrics.val_acc%20DESC",
    "/runs/50/",
    "/compare/?runs=50,51,52",
    "/experiments/",
    "/clusters/",
    "/clusters/local/",
    "/clusters/local/queue/",
    "/quotas/",
    "/settings/",
    "/settings/tokens/all/",
    "/audit/",
    "/models/",
    "/models/net-1/",
    "/usage/",
    "/alerts/",
    "/search/?q=train%2099",
    "/runs/new/",
)
OPERATOR_PAGES = ("/", "/clusters/", "/audit/", "/clusters/local/queue/")
# Each lists the workspaces or people of the whole installation, at least as choices.
LISTS = ("/workspaces/", "/people/", "/clusters/local/shares/", "/clusters/local/windows/", "/quotas/")


@dataclass
class PageServer:
    process: subprocess.Popen[str]

    def load(self, who: str, path: str, count: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"who": who, "path": path, "count": count}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server of pages ended with {self.process.wait()}")
        return dict(json.loads(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="pairs of loads of each page")
    parser.add_argument("--loads", type=int, default=3, help="of a page by each server in a round")
    parser.add_argument("--runs", type=int, default=RUNS, help="in each workspace")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure pages whose address contains it")
    parser.add_argument("--folder", help="keep the databases there, and use those that are there already")
    options = parser.parse_args()
    with ExitStack() as contexts:
        temporary = tempfile.TemporaryDirectory(prefix="th-bench-workspaces-")
        folder = Path(options.folder or contexts.enter_context(temporary))
        sys.exit(_measure(folder, options))


def _measure(folder: Path, options: argparse.Namespace) -> int:
    limits = Limits()
    with page_server(folder, 1, options.runs) as one, page_server(folder, WORKSPACES, options.runs) as many:
        for server in (one, many):
            server.answer()
        for who, pages in ((OWNER, PAGES), (OPERATOR, OPERATOR_PAGES)):
            for path in filter(lambda page: options.only in page, pages):
                ratio, low, high = _compare(one, many, who, path, options)
                name = f"{path} for the {'owner' if who == OWNER else 'operator'}"
                print(f"  {ratio:.3f} ({low:.3f} to {high:.3f})")
                limits.at_most(name, high, MAX_RATIO)
        print("Lists of all workspaces or people, without a limit:")
        for path in filter(lambda page: options.only in page, LISTS):
            _compare(one, many, OPERATOR, path, options)
    return limits.exit_code()


@contextmanager
def page_server(folder: Path, workspaces: int, runs: int) -> Iterator[PageServer]:
    """Starts a process that fills a database of its own, unless that is filled already, and serves pages."""
    data = folder / f"workspaces-{workspaces}"
    data.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{data / 'hub.sqlite3'}"
    env = {**os.environ, "DATABASE_URL": url, "DATA_DIR": str(data), "ALLOWED_HOSTS": "*"}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
    command = [sys.executable, "-m", "bench.many_workspaces.page_process"]
    sizes = ["--workspaces", str(workspaces), "--people", str(PEOPLE), "--runs", str(runs)]
    process = subprocess.Popen(
        [*command, *sizes], cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield PageServer(process)
    finally:
        process.kill()
        process.wait()


def _compare(
    one: PageServer, many: PageServer, who: str, path: str, options: argparse.Namespace
) -> tuple[float, float, float]:
    """Returns the geometric mean of the ratios of CPU time, and its 95 % interval."""
    small, large = one.load(who, path, 1), many.load(who, path, 1)
    if small["status"] != 200 or large["status"] != 200:
        raise RuntimeError(f"{path}: status {small['status']} and {large['status']}")
    logarithms: list[float] = []
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(options.rounds):
        pair = {}
        for server in (one, many) if number % 2 else (many, one):
            pair[id(server)] = server.load(who, path, options.loads)["cpu_s"]
        times[0].append(pair[id(one)])
        times[1].append(pair[id(many)])
        logarithms.append(math.log(pair[id(many)] / pair[id(one)]))
    mean = statistics.fmean(logarithms)
    margin = 1.96 * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    medians = [statistics.median(values) * 1e3 for values in times]
    print(
        f"{path:40} CPU {medians[0]:6.1f} and {medians[1]:6.1f} ms, "
        f"{small['bytes'] / 1e3:.0f} and {large['bytes'] / 1e3:.0f} kB",
        flush=True,
    )
    return math.exp(mean), math.exp(mean - margin), math.exp(mean + margin)


if __name__ == "__main__":
    main()
