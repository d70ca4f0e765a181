"""A test that `test_guard` starts in a run of its own and interrupts. Its name hides it from pytest."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django.conf import settings

from tests.hosts.machine import Machine
from tests.hosts.wiring import Bridge
from tests.hub import PROJECT, Hub
from tests.journeys.runs import Runs
from trainhub.up.valkey import runtime_folder


def test_waits_for_its_interruption(own_hub: Hub, valkey: str, tmp_path: Path) -> None:
    """A hub with a training script that runs, a Valkey and, as root, a machine in a namespace of its own."""
    if "INTERRUPTED_READY" not in os.environ:
        pytest.fail("tests/harness/test_guard.py starts this test")
    bridge = Bridge(1)
    if os.getuid() == 0:
        bridge.build()
        Machine(bridge, 1, tmp_path / "machine", [PROJECT]).boot()
    runs = Runs(own_hub.start())
    runs.until(runs.script("import time; time.sleep(600)"), "Running")
    sockets = [runtime_folder(folder) / "valkey.sock" for folder in (own_hub.data_dir, settings.DATA_DIR)]
    ready = Path(os.environ["INTERRUPTED_READY"])
    ready.with_suffix(".new").write_text("\n".join([bridge.name.removesuffix("br"), *map(str, sockets)]))
    ready.with_suffix(".new").rename(ready)
    signal.pause()
