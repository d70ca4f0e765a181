"""`manage.py migrate-to-postgresql` of a hub with 100,000 runs, beside the same rows by hand: each table as
CSV out of `sqlite3` into `psql` with COPY, in a database that has all tables and indexes, with foreign keys
off. By hand nothing is checked before or verified afterwards."""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import psycopg

from bench.support.limits import Limits, median
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT

MAX_RATIO, MAX_MIB = 2.0, 200
MANAGE = (sys.executable, "manage.py")
WITHOUT_CHECKS = {"PGOPTIONS": "-c session_replication_role=replica -c timezone=UTC"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="th-bench-move-") as folder, postgresql() as server:
        file = Path(folder) / "trainhub.sqlite3"
        env = {**os.environ, "DATA_DIR": folder, "DATABASE_URL": ""}
        _run([*MANAGE, "migrate", "-v0"], env)
        filler = [sys.executable, "-m", "bench.backup.hub_filler", "--blobs=0", "--no-files"]
        _run([*filler, f"--runs={options.runs}"], env)
        by_hand, moved, peaks = list[float](), list[float](), list[float]()
        for number in range(options.rounds):
            for is_move in (number % 2 == 0, number % 2 == 1):
                url = _new_database(server.url, f"round_{number}_{int(is_move)}")
                if is_move:
                    took, peak = _move(file, url, env)
                    moved.append(took)
                    peaks.append(peak)
                else:
                    by_hand.append(_copy_by_hand(file, url, env))
        size = file.stat().st_size / 1e6
        print(f"{options.runs:,} runs, {size:,.0f} MB of SQLite, the median of {options.rounds}")
        print(f"  moved and verified {median(moved):.1f} s, by hand {median(by_hand):.1f} s", flush=True)
        limits.at_most("a move to a copy by hand", median(moved) / median(by_hand), MAX_RATIO)
        limits.at_most(f"the most memory of a move to {MAX_MIB} MiB", max(peaks) / MAX_MIB, 1)
    return limits.exit_code()


def _move(file: Path, url: str, env: Mapping[str, str]) -> tuple[float, float]:
    """Returns seconds, and the most MiB that the process held."""
    command = [*MANAGE, "migrate-to-postgresql", f"--from={file}", f"--to={url}"]
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.monotonic() - started, usage.ru_maxrss / 1024


def _copy_by_hand(file: Path, url: str, env: Mapping[str, str]) -> float:
    started = time.monotonic()
    env = {**env, "DATABASE_URL": url, **WITHOUT_CHECKS}
    _run([*MANAGE, "migrate", "-v0"], env)
    with closing(sqlite3.connect(file)) as source, psycopg.connect(url) as target:
        names = [row[0] for row in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = [name for name in names if not name.startswith("sqlite_")]
        target.execute(f"TRUNCATE {', '.join(tables)}")
    for table in tables:
        with closing(sqlite3.connect(file)) as source:
            columns = ", ".join(f'"{row[1]}"' for row in source.execute(f"PRAGMA table_info({table})"))
        select = ["sqlite3", "-csv", "-nullvalue", "\\N", str(file), f"SELECT {columns} FROM {table}"]
        copy = f"COPY {table} ({columns}) FROM STDIN (FORMAT csv, NULL '\\N')"
        with subprocess.Popen(select, stdout=subprocess.PIPE) as rows:
            subprocess.run(["psql", "-qc", copy, url], stdin=rows.stdout, env=env, check=True)
    _run(["psql", "-qc", "VACUUM ANALYZE", url], env)
    return time.monotonic() - started


def _new_database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"


def _run(command: Sequence[str], env: Mapping[str, str]) -> None:
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
