"""A hub on PostgreSQL with a long history: its pages and searches, a purge beside them, and its start.

The limits are those of a hub with 1,000,000 runs, 100,000,000 points and 10,000,000 artifacts: a page of
the history within 1 s, a search within 150 ms, nobody waits for more than 1 s while deleted runs are purged,
and the hub starts at most 3 s later than an empty one. A search is compared with a bare query, too.

By default the hub has a twentieth of that. With `--folder` the filled database stays, and is used again; with
`--fill-s` the filling stops after so many seconds, and goes on with the next call. The whole takes 14 GB."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg

from bench.support.limits import Limits, median
from bench.support.postgresql import Database, postgresql
from bench.support.stack import ROOT, free_port

MAX_LATER_START_S = 3.0
STARTS = 3
MORE_TO_FILL = 75
# As docs/limits.md recommends for so long a history.
SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "512MB", "max_wal_size": "2GB"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--artifacts", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, help="keep the database there, or use the one that is there")
    parser.add_argument("--fill-s", type=float, default=1e9, help="stop filling after so many seconds")
    parser.add_argument("--only", choices=("fill", "pages", "purge", "start"), help="one part alone")
    options = parser.parse_args()
    limits = Limits()
    with ExitStack() as contexts:
        data = contexts.enter_context(tempfile.TemporaryDirectory(prefix="th-bench-history-"))
        database = contexts.enter_context(postgresql(options.folder, **SETTINGS))
        env = {**os.environ, "DATABASE_URL": database.url, "DATA_DIR": data, "ALLOWED_HOSTS": "*"}
        if not _is_filled(database, env, options):
            print("There is more to fill; call it again with the same folder.")
            return MORE_TO_FILL
        for part in ("pages", "purge"):
            if options.only in (None, part):
                command = [sys.executable, "-m", "bench.large_history.measuring_process", part]
                if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
                    limits.exceeded.append(part)
        if options.only in (None, "start"):
            _measure_start(database, env, limits)
    return limits.exit_code()


def _is_filled(database: Database, env: Mapping[str, str], options: argparse.Namespace) -> bool:
    with psycopg.connect(database.url) as connection:
        row = connection.execute("SELECT to_regclass('bench_vacuumed') IS NOT NULL").fetchone()
    if row is not None and row[0]:
        return True
    started = time.monotonic()
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
    sizes = [f"--{name}={getattr(options, name)}" for name in ("runs", "points", "artifacts")]
    filler = [sys.executable, "-m", "bench.large_history.hub_filler", *sizes, f"--max-s={options.fill_s}"]
    code = subprocess.run(filler, cwd=ROOT, env=env, check=False).returncode
    if code not in (0, MORE_TO_FILL):
        raise SystemExit(code)
    print(f"  filled for {time.monotonic() - started:.0f} s", flush=True)
    return code == 0


def _measure_start(database: Database, env: Mapping[str, str], limits: Limits) -> None:
    """Compares with a hub on an empty database of the same server. The first start of each makes keys and
    folders, and is not counted."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bench_empty")
        connection.execute("CREATE DATABASE bench_empty")
    empty = database.url.rpartition("/")[0] + "/bench_empty"
    took: dict[str, list[float]] = {database.url: [], empty: []}
    with tempfile.TemporaryDirectory(prefix="th-bench-start-") as folder:
        for turn in range(STARTS + 1):
            for url in took:
                seconds = _start({**env, "DATABASE_URL": url, "DATA_DIR": f"{folder}/{len(url)}"})
                took[url] += [seconds] if turn else []
    large, small = (median(seconds) for seconds in took.values())
    print(f"start: {large:.1f} s, of an empty hub {small:.1f} s")
    limits.at_most("seconds that the start is later", large - small, MAX_LATER_START_S)


def _start(env: Mapping[str, str]) -> float:
    """Seconds of `manage.py up` to the first answer."""
    port = free_port()
    as_root = {"RUN_AS": "root"} if os.geteuid() == 0 else {}
    started = time.monotonic()
    hub = subprocess.Popen(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env={**env, **as_root, "BIND": f"127.0.0.1:{port}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _answers(port):
            if hub.poll() is not None:
                raise RuntimeError(f"manage.py up ended with {hub.returncode}")
            time.sleep(0.01)
        return time.monotonic() - started
    finally:
        hub.send_signal(signal.SIGINT)
        hub.wait(60)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    sys.exit(main())
