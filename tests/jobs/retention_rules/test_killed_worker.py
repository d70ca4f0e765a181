"""The process that removes data is killed with SIGKILL, again and again, and the next one goes on."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.migrated import PROJECT, put_into

pytestmark = pytest.mark.slow
RUNS, KILLS = 300, 4
LOGS = "runs/*/1/logs/70_driver_log.txt"


def test_a_kill_at_any_point_loses_nothing_but_time(tmp_path: Path) -> None:
    put_into(tmp_path)
    environment = {**os.environ, "DATA_DIR": str(tmp_path), "DATABASE_URL": ""}
    environment["DJANGO_SETTINGS_MODULE"] = "trainhub.settings"
    python = [sys.executable, "-m"]
    fill = [*python, "bench.retention.filler", f"--runs={RUNS}"]
    subprocess.run(fill, cwd=PROJECT, env=environment, check=True)
    remover = [*python, "bench.retention.remover"]
    database = tmp_path / "trainhub.sqlite3"
    interrupted = 0
    for kill in range(KILLS):
        files = len(list(tmp_path.glob(LOGS)))
        assert files
        with subprocess.Popen(remover, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL) as process:
            while len(list(tmp_path.glob(LOGS))) > files - 1 - 3 * kill and process.poll() is None:
                time.sleep(0.001)
            process.kill()
        interrupted += bool(_rows(database, "SELECT 1 FROM jobs_dataremoval WHERE done_at IS NULL"))
    assert interrupted, "no kill came in the middle of a batch"
    done = subprocess.run(remover, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True)
    assert int(done.stdout) > 0
    assert not list(tmp_path.glob(LOGS))
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    for table in ("jobs_artifact", "tracking_metricslice", "clusters_storedseries"):
        assert _rows(database, f"SELECT COUNT(*) FROM {table}") == [(0,)]  # noqa: S608 - three words
    assert _rows(database, "SELECT COUNT(*) FROM jobs_run") == [(RUNS,)]
    assert _rows(
        database, "SELECT kind, COUNT(*) FROM jobs_dataremoval WHERE done_at NOT NULL GROUP BY kind"
    ) == [("logs", RUNS), ("metrics", RUNS), ("outputs", RUNS), ("telemetry", RUNS)]
    batches = [
        json.loads(str(detail))
        for (detail,) in _rows(
            database, "SELECT detail FROM workspaces_auditevent WHERE verb = 'retention.removed'"
        )
    ]
    for kind in ("logs", "metrics", "outputs", "telemetry"):
        # Each run once, however often it was tried.
        runs = [run for batch in batches if batch["kind"] == kind for run in batch["runs"]]
        assert len(runs) == len(set(runs)) == RUNS


def _rows(database: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
