"""Fills the hub of the environment with ended runs that have a log, files, metric points and telemetry, and
puts a rule in force that removes all of it: a process of its own."""

from __future__ import annotations

import argparse
import hashlib
import os
from datetime import timedelta
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from django.conf import settings  # noqa: E402 - only now are the settings there
from django.db.models import F  # noqa: E402

from bench.support.run_filler import analyze, fill  # noqa: E402
from clusters.models import Cluster, Node, StoredSeries  # noqa: E402
from jobs.models import Artifact, Attempt, Member, RuleInForce, Run  # noqa: E402
from jobs.states import DataKind  # noqa: E402
from tracking.models import MetricSlice  # noqa: E402
from workspaces.models import Workspace  # noqa: E402

LOG, LOG_BYTES, FILE_BYTES, PACKED_BYTES = "70_driver_log.txt", 8_000, 1_000, 4_000
DAYS, FILES, SLICES, CURVES = 400, 2, 2, 2
AT_ONCE = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, required=True)
    options = parser.parse_args()
    workspace, _ = Workspace.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    fill(options.runs, workspace)
    past = timedelta(days=DAYS)
    Run.objects.update(finished_at=F("finished_at") - past, created_at=F("created_at") - past)
    cluster, _ = Cluster.objects.get_or_create(name="local")
    node, _ = Node.objects.get_or_create(name="bench", defaults={"cluster": cluster})
    runs = list(Run.objects.values_list("pk", flat=True))
    for start in range(0, len(runs), AT_ONCE):
        _fill_rows(runs[start : start + AT_ONCE], node)
        for run in runs[start : start + AT_ONCE]:
            _write_files(run)
    analyze()
    for kind in DataKind:
        RuleInForce.objects.update_or_create(workspace=workspace, kind=kind, defaults={"days": DAYS // 2})


def _fill_rows(runs: list[str], node: Node) -> None:
    attempts = Attempt.objects.bulk_create(Attempt(run_id=run, number=1, placement={}) for run in runs)
    Member.objects.bulk_create(
        Member(attempt=attempt, node=node, rank=0, local_rank=0, log_name=LOG, log_bytes=LOG_BYTES)
        for attempt in attempts
    )
    Artifact.objects.bulk_create(
        Artifact(run_id=run, attempt=1, path=path, size_bytes=FILE_BYTES, sha256=_hash(content))
        for run in runs
        for path, content in _files(run).items()
    )
    packed = os.urandom(PACKED_BYTES)
    MetricSlice.objects.bulk_create(
        MetricSlice(run_id=run, points=100, data=packed) for run in runs for _ in range(SLICES)
    )
    StoredSeries.objects.bulk_create(
        StoredSeries(
            holder=run, attempt=1, node_name="bench", subject=f"{curve}", step_s=10, start=0, data=packed
        )
        for run in runs
        for curve in range(CURVES)
    )


def _write_files(run: str) -> None:
    data = Path(settings.DATA_DIR)
    logs = data / "runs" / run / "1" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / LOG).write_bytes(b"x" * LOG_BYTES)
    for content in _files(run).values():
        blob = data / "blobs" / _hash(content)[:2] / _hash(content)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        blob.chmod(0o400)
        # As if it had been kept long ago: what was kept within the last hour is left to the daily clean-up.
        os.utime(blob, (0, 0))


def _files(run: str) -> dict[str, bytes]:
    return {f"file-{number}": f"{run}{number}".encode().ljust(FILE_BYTES) for number in range(FILES)}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
