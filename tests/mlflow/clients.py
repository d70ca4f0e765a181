"""The unmodified MLflow client, in a process of its own: a script logs, and prints what it saw as its last
line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from tests.hub import OURS, Hub

PREAMBLE = """
import json, logging, math, os, sys, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
client = MlflowClient()
out = {}

def error_of(call, *args, **named):
    "What the server refuses: its code and its sentence."
    try:
        call(*args, **named)
    except MlflowException as error:
        return [error.error_code, error.message]
    return ["", ""]
"""
ENDING = """
print()
print(json.dumps(out))
"""
# Libraries that take a few seconds to import take minutes on a busy machine.
SECONDS = 600


def run_client(
    python: str, hub: Hub, script: str, folder: Path, *, token: str | None = None, **variables: str
) -> dict[str, Any]:
    """`script` fills `out`, which is returned. It finds `mlflow`, `client` and `refused`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not OURS.match(name) and not name.startswith("MLFLOW_")
    }
    env = {
        **inherited,
        "MLFLOW_TRACKING_URI": hub.url,
        "MLFLOW_TRACKING_TOKEN": hub.owner_token() if token is None else token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "GIT_PYTHON_REFRESH": "quiet",
        # For each logged model it imports everything again in processes of its own, to list the packages.
        "MLFLOW_REQUIREMENTS_INFERENCE_TIMEOUT": "1",
        **variables,
    }
    file = folder / "client.py"
    file.write_text(PREAMBLE + textwrap.dedent(script) + ENDING)
    process = subprocess.run(
        [python, str(file)], cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert process.returncode == 0, f"{process.stdout[-2000:]}\n{process.stderr[-6000:]}"
    return dict(json.loads(process.stdout.strip().splitlines()[-1]))
