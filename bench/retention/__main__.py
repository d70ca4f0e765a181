"""Retention rules remove all data of many runs, on SQLite and PostgreSQL, while another process begins a run
every few hundredths of a second in the same workspace. None of these may wait for a second. Beside it the
same without the removal."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT

MAX_PAUSE_S = 1.0
ALONE_S = 5.0
KINDS = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--only", choices=("SQLite", "PostgreSQL"), help="one database instead of both")
    options = parser.parse_args()
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="th-bench-retention-") as folder:
        if options.only != "PostgreSQL":
            data = Path(folder) / "SQLite"
            _measure(data, f"sqlite:///{data}/trainhub.sqlite3", options.runs, limits)
        if options.only != "SQLite":
            with postgresql() as server:
                _measure(Path(folder) / "PostgreSQL", server.url, options.runs, limits)
    return limits.exit_code()


def _measure(data: Path, url: str, runs: int, limits: Limits) -> None:
    data.mkdir()
    env = {**os.environ, "DATA_DIR": str(data), "DATABASE_URL": url}
    _run([sys.executable, "manage.py", "migrate", "-v0"], env)
    _run([sys.executable, "-m", "bench.retention.filler", f"--runs={runs}"], env)
    with _submitter(env) as alone:
        time.sleep(ALONE_S)
    with _submitter(env) as beside:
        started = time.monotonic()
        removed = int(_run([sys.executable, "-m", "bench.retention.remover"], env))
        took = time.monotonic() - started
    if removed != KINDS * runs:
        raise RuntimeError(f"{removed} removals of {KINDS * runs}")
    print(
        f"{data.name}: all data of {runs} runs removed in {took:.0f} s, {1000 * took / runs:.1f} ms each; "
        f"meanwhile {len(beside)} runs were begun, in {1000 * median(beside):.1f} ms each (median), the "
        f"slowest in {1000 * max(beside):.0f} ms; alone in {1000 * median(alone):.1f} ms, the slowest in "
        f"{1000 * max(alone):.0f} ms",
        flush=True,
    )
    limits.at_most(f"the slowest submission to a second, {data.name}", max(beside) / MAX_PAUSE_S, 1.0)


@contextmanager
def _submitter(env: Mapping[str, str]) -> Iterator[list[float]]:
    """Yields a list that has the seconds of each submission after the block."""
    command = [sys.executable, "-m", "bench.retention.submitter"]
    pipe = subprocess.PIPE
    took: list[float] = []
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True) as process:
        yield took
        answer, _ = process.communicate()
    took += json.loads(answer)


def _run(command: list[str], env: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
