"""Runs a script of the SDK v1 that submits to a whole hub, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

from tests.hub import PROJECT, Hub

MODEL_NAMES = re.compile(r"\b(?:hawks|flowers|seeds|trees|leaves)\b")


def run_script(hub: Hub, folder: Path, submit: str, train: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a script in a folder that has a model, the folder `net`, and the source `src`. The names of its
    models are made its own: the hub has those of other tests, and of an earlier try."""
    own = uuid.uuid4().hex[:6]
    submit, train = (MODEL_NAMES.sub(rf"\g<0>{own}", text) for text in (submit, train))
    (folder / "net" / "weights").mkdir(parents=True)
    (folder / "net" / "weights" / "a.bin").write_bytes(bytes(range(256)))
    (folder / "net" / "config.json").write_text("{}")
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text(train)
    (folder / "submit.py").write_text(submit)
    variables = {"TRAINHUB_URL": hub.url, "TRAINHUB_TOKEN": hub.owner_token(), "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "trainhub_azureml", "submit.py"],
        cwd=folder,
        env={**os.environ, **variables, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
