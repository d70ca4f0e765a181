"""Run by an interpreter with MLflow: sends a file with its unmodified client and fetches it again. Prints
JSON, seconds each.

python -m bench.support.mlflow_artifacts FILE
"""

from __future__ import annotations

import filecmp
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

from mlflow import MlflowClient

from bench.support.mlflow_client import a_run

logging.disable(logging.WARNING)


def main() -> None:
    file = Path(sys.argv[1])
    client = MlflowClient()
    run = a_run(client)
    started = time.perf_counter()
    client.log_artifact(run, str(file))
    sent = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        came = time.perf_counter()
        got = client.download_artifacts(run, file.name, folder)
        done = time.perf_counter()
        same = filecmp.cmp(file, got, shallow=False)
    print(json.dumps({"up_s": sent - started, "down_s": done - came, "same": same}))


if __name__ == "__main__":
    main()
