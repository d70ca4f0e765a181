"""Fills an empty, migrated hub on PostgreSQL with ended runs, their points and artifacts, as the product
would have written them: in parts of a few seconds, so that it can be stopped and goes on the next time. A
process of its own, started by bench.large_history.

The indexes of the filled tables are made at the end: kept up row by row, they take several times as long."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

import numpy as np  # noqa: E402 - only now are the settings there
import psycopg  # noqa: E402

from bench.large_history.filling_sql import PARTS, SEQUENCES  # noqa: E402
from bench.support.run_filler import PLAN_JSON  # noqa: E402
from clusters.models import Cluster, Node  # noqa: E402
from jobs.models import Experiment  # noqa: E402
from tracking.metrics.points import Points, block_bytes  # noqa: E402
from trainhub_launch.scheduler.placement import PlacedNode  # noqa: E402
from workspaces.models import Membership, User, Workspace  # noqa: E402

Connection = psycopg.Connection[tuple[Any, ...]]
WORKSPACES, EXPERIMENTS, PEOPLE, BLOCKS = 3, 200, 300, 200
METRICS = ("acc", "loss", "val_acc")
RUNS_AT_ONCE = 10_000
TABLES = (
    "jobs_run",
    "jobs_runtag",
    "jobs_attempt",
    "jobs_attemptnode",
    "jobs_member",
    "jobs_runevent",
    "jobs_artifact",
    "tracking_metric",
    "tracking_metricblock",
    "tracking_param",
    "tracking_usageentry",
    "workspaces_auditevent",
)
# Those that a constraint brings along come back with it. Primary keys stay.
SAVE_INDEXES = """
CREATE TABLE bench_index AS
SELECT c.conrelid::regclass::text AS home, c.conname::text AS name, true AS is_constraint,
  format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', c.conrelid::regclass, c.conname,
    pg_get_constraintdef(c.oid)) AS sql
FROM pg_constraint c WHERE c.contype = 'u' AND c.conrelid::regclass::text = ANY (%(tables)s)
UNION ALL
SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, false, pg_get_indexdef(i.indexrelid)
FROM pg_index i WHERE i.indrelid::regclass::text = ANY (%(tables)s) AND NOT i.indisprimary
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""


def main() -> int:
    """Returns 0 when the hub is filled, 75 if there is more to do."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("runs", "points", "artifacts"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--max-s", type=float, default=1e9, help="stop after so many seconds")
    options = parser.parse_args()
    stop_at = time.monotonic() + options.max_s
    with psycopg.connect(
        os.environ["DATABASE_URL"], autocommit=True, cursor_factory=psycopg.ClientCursor
    ) as base:
        base.execute("SET session_replication_role = replica")  # No checks of what refers to what.
        if not _has_table(base, "bench_index"):
            _begin(base)
        return 0 if _write_runs(base, options, stop_at) and _make_indexes(base, stop_at) else 75


def _has_table(base: Connection, name: str) -> bool:
    row = base.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()
    return row is not None and bool(row[0])


def _begin(base: Connection) -> None:
    """Makes what runs refer to, and drops the indexes of the tables."""
    node = Node.objects.create(
        cluster=Cluster.objects.create(name="local"), name="node-0", token_digest="bench", slots=8, cores=8
    )
    workspaces = [Workspace.objects.create(slug=f"team-{n}", name=f"Team {n}") for n in range(WORKSPACES)]
    people = User.objects.bulk_create(User(username=f"person-{number}") for number in range(PEOPLE))
    Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role="contributor" if number else "owner")
        for workspace in workspaces
        for number, user in enumerate(people)
    )
    experiments = [
        (number, Experiment.objects.create(workspace=workspace, name=f"experiment-{number}"))
        for workspace in workspaces
        for number in range(EXPERIMENTS)
    ]
    with base.transaction():
        for name in ("workspace", "person", "experiment"):
            base.execute(f"CREATE TABLE bench_{name} (place int, id bigint, name text, workspace_id bigint)")
        base.execute("CREATE TABLE bench_block (place int, data bytea)")
        base.execute("CREATE TABLE bench_node AS SELECT %s::bigint AS node_id", [node.pk])
        cursor = base.cursor()
        cursor.executemany(
            "INSERT INTO bench_workspace VALUES (%s, %s)", [(n, item.pk) for n, item in enumerate(workspaces)]
        )
        cursor.executemany(
            "INSERT INTO bench_person VALUES (%s, %s, %s)",
            [(n, user.pk, user.username) for n, user in enumerate(people)],
        )
        cursor.executemany(
            "INSERT INTO bench_experiment VALUES (%s, %s, %s, %s)",
            [(n, item.pk, item.name, item.workspace_id) for n, item in experiments],
        )
        base.execute(SAVE_INDEXES, {"tables": list(TABLES)})
        for home, name, is_constraint in base.execute("SELECT home, name, is_constraint FROM bench_index"):
            base.execute(
                f"ALTER TABLE {home} DROP CONSTRAINT {name}" if is_constraint else f"DROP INDEX {name}"
            )


def _write_runs(base: Connection, options: argparse.Namespace, stop_at: float) -> bool:
    """Writes the runs that are not there yet, as long as there is time; returns whether all are there."""
    curves = len(METRICS)
    values = {
        "runs": options.runs,
        "points": max(1, options.points // options.runs // curves),
        "files": max(1, options.artifacts // options.runs),
        "curves": curves,
        "metrics": list(METRICS),
        "experiments": EXPERIMENTS,
        "people": PEOPLE,
        "blocks": BLOCKS,
        "preview": PLAN_JSON,
        "placement": json.dumps([asdict(PlacedNode("node-0", "127.0.0.1", (), 2, 2))]),
    }
    _make_blocks(base, values["points"])
    row = base.execute("SELECT count(*) FROM jobs_run").fetchone()
    first = 1 + (row[0] if row else 0)
    while first <= options.runs and time.monotonic() < stop_at:
        last = min(first + RUNS_AT_ONCE - 1, options.runs)
        _write_part(base, {**values, "first": first, "last": last})
        first = last + 1
    print(f"  {first - 1:,} runs are written", flush=True)
    return bool(first > options.runs)


def _make_blocks(base: Connection, points: int) -> None:
    """Makes some blocks as the compaction of the product writes them."""
    numbers = np.random.default_rng(7)
    steps = np.arange(points, dtype=np.int64)
    base.execute("TRUNCATE bench_block")
    for place in range(BLOCKS):
        ms = 1_700_000_000_000 + np.cumsum(numbers.integers(900, 1_100, points))
        data = block_bytes(Points(steps, ms, numbers.random(points)))
        base.execute("INSERT INTO bench_block VALUES (%s, %s)", [place, data])


def _write_part(base: Connection, values: Mapping[str, Any]) -> None:
    with base.transaction():
        for sql in PARTS:
            base.execute(sql, values)


def _make_indexes(base: Connection, stop_at: float) -> bool:
    """Makes the indexes again as long as there is time, and what autovacuum would have made; returns whether
    all is there."""
    base.execute("SET maintenance_work_mem = '512MB'")
    rows = base.execute("SELECT name, sql FROM bench_index ORDER BY home, name").fetchall()
    for name, sql in rows:
        if time.monotonic() > stop_at:
            return False
        with base.transaction():
            base.execute(sql)
            base.execute("DELETE FROM bench_index WHERE name = %s", [name])
    if not _has_table(base, "bench_vacuumed"):
        for table in SEQUENCES:
            base.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")
        base.execute("UPDATE workspaces_workspace SET last_run_number = (SELECT max(number) FROM jobs_run)")
        base.execute("VACUUM ANALYZE")
        base.execute("CREATE TABLE bench_vacuumed ()")
    return True


if __name__ == "__main__":
    raise SystemExit(main())
