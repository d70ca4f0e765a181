"""`manage.py backup` and `restore` of a hub with many runs, on SQLite and PostgreSQL; beside `cp -r` of the
same files and the database's own tool, `sqlite3 .backup` or `pg_dump`, by hand. Both end with everything on
the disk."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT

MAX_RATIO = 1.5
ROUNDS = 3
MANAGE = (sys.executable, "manage.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3_000)
    parser.add_argument("--blobs", type=int, default=1_000, help="of half a MiB each")
    options = parser.parse_args()
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="th-bench-backup-") as folder:
        by_hand = Path(folder) / "by-hand" / "database"
        database = Path(folder) / "SQLite" / "trainhub.sqlite3"
        dump = ["sqlite3", str(database), f".backup '{by_hand}'"]
        _measure(database.parent, f"sqlite:///{database}", dump, options, limits)
        shutil.rmtree(database.parent)
        with postgresql() as server:
            dump = ["pg_dump", "-Fc", f"--file={by_hand}", f"--dbname={server.url}"]
            _measure(Path(folder) / "PostgreSQL", server.url, dump, options, limits)
    return limits.exit_code()


def _measure(data: Path, url: str, dump: Sequence[str], options: argparse.Namespace, limits: Limits) -> None:
    """Measures the hub of the data folder, which is named like the database."""
    data.mkdir()
    env = {**os.environ, "DATA_DIR": str(data), "DATABASE_URL": url}
    _run([*MANAGE, "migrate", "-v0"], env)
    filler = [sys.executable, "-m", "bench.backup.hub_filler"]
    _run([*filler, f"--runs={options.runs}", f"--blobs={options.blobs}"], env)
    backups = data.parent / "backups"
    rounds = [_round(number, data, dump, env) for number in range(ROUNDS)]
    took = {key: median([one[key] for one in rounds]) for key in rounds[0]}
    _run([*MANAGE, "backup", str(backups), "--copy"], env)
    took["verified"] = _run([*MANAGE, "backup", "--verify", str(backups)], env)
    if data.name == "SQLite":
        took["restored"] = _restore(data.parent / "restored", backups)
    _remove(backups)
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) / 1e6
    print(f"{data.name}: {options.runs} runs, {size:,.0f} MB in DATA_DIR, the median of {ROUNDS}")
    print("  " + ", ".join(f"{key} {value:.1f} s" for key, value in took.items()), flush=True)
    for key in ("copied", "linked"):
        name = f"a backup with files {key} to cp and the database's tool, {data.name}"
        limits.at_most(name, took[key] / took["by hand"], MAX_RATIO)


def _round(number: int, data: Path, dump: Sequence[str], env: Mapping[str, str]) -> dict[str, float]:
    """Measures each way once. Another one comes first in each round: after much was deleted, file systems
    make files more slowly for a while."""
    by_hand, backups = data.parent / "by-hand", data.parent / "backups"
    copy = ["cp", "-r", str(data / "runs"), str(data / "blobs"), str(by_hand)]
    took = {}
    for turn in range(3):
        way = ("by hand", "copied", "linked")[(number + turn) % 3]
        if way == "by hand":
            by_hand.mkdir()
            took[way] = sum(_run(one, env) for one in (copy, dump, ["sync", "-f", str(by_hand)]))
            _remove(by_hand)
            continue
        options = ["--copy"] if way == "copied" else []
        took[way] = _run([*MANAGE, "backup", str(backups), *options], env)
        if way == "copied":
            took["the next one"] = _run([*MANAGE, "backup", str(backups), *options], env)
        _remove(backups)
    return took


def _remove(folder: Path) -> None:
    """Removes a folder, also from the disk, so that nobody else's time has it in it."""
    shutil.rmtree(folder)
    subprocess.run(["sync", "-f", str(folder.parent)], check=True)


def _restore(data: Path, backups: Path) -> float:
    env = {**os.environ, "DATA_DIR": str(data), "DATABASE_URL": ""}
    took = _run([*MANAGE, "restore", str(backups)], env)
    shutil.rmtree(data)
    return took


def _run(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Seconds of a command that has to succeed."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr}")
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
