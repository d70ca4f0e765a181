"""Fills the hub of the environment with runs, a log and its final size for each, and content-addressed
files: a process of its own, started by bench.backup."""

from __future__ import annotations

import argparse
import hashlib
import os
import random
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from django.conf import settings  # noqa: E402 - only now are the settings there

from bench.support.run_filler import fill  # noqa: E402
from jobs.models import Run  # noqa: E402
from workspaces.models import Workspace  # noqa: E402

LOG_BYTES, BLOB_BYTES = 8_000, 512 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--blobs", type=int, required=True)
    parser.add_argument("--no-files", action="store_true", help="only the database")
    options = parser.parse_args()
    workspace, _ = Workspace.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    fill(options.runs, workspace)
    numbers, data = random.Random(7), Path(settings.DATA_DIR)
    for run in () if options.no_files else Run.objects.values_list("pk", flat=True):
        attempt = data / "runs" / run / "1"
        (attempt / "logs").mkdir(parents=True)
        (attempt / "logs" / "70_driver_log.txt").write_bytes(numbers.randbytes(LOG_BYTES))
        (attempt / "sizes.json").write_text("{}")
    for _ in range(options.blobs):
        content = numbers.randbytes(BLOB_BYTES)
        sha256 = hashlib.sha256(content).hexdigest()
        blob = data / "blobs" / sha256[:2] / sha256
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        blob.chmod(0o400)


if __name__ == "__main__":
    main()
