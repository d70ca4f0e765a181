"""Runs found by filters and in orders, and a page of the run table: 100,000 runs of 8 metrics, 8 params and 4
tags each."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from bench.support.postgresql import postgresql
from bench.support.stack import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="th-bench-runs-") as folder:
        print("SQLite", flush=True)
        _in_process(folder, f"sqlite:///{folder}/runs.sqlite3", options.runs)
        with postgresql() as database:
            print("PostgreSQL", flush=True)
            _in_process(folder, database.url, options.runs)


def _in_process(folder: str, url: str, runs: int) -> None:
    """Of its own: settings are read once."""
    env = {**os.environ, "DATABASE_URL": url, "DATA_DIR": folder, "ALLOWED_HOSTS": "*"}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
    subprocess.run(
        [sys.executable, "-m", "bench.support.search_process", "--runs", str(runs)],
        cwd=ROOT,
        env=env,
        check=True,
    )


if __name__ == "__main__":
    main()
