"""What ends an installation from outside: a full disk, and whoever kills the installer."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import settings
from tests.node.hub import FakeHub
from tests.node.launch.test_hub_index import OrderIndex, index, locked, no_settings, ordered
from tests.node.launch.test_late_modules import command_line
from tests.node.processes import remaining_processes
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.agent import Agent

__all__ = ["index", "no_settings"]
pytestmark = pytest.mark.slow
IMPORT = "import tinylib\nprint(tinylib.VERSION)\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_named_and_leaves_nothing(
    hub: FakeHub, start_agent: Callable[..., Agent], index: OrderIndex, tmp_path: Path, small_disk: Path
) -> None:
    index.add("tinylib", size=4 * 2**20)
    spec = locked(index, "tinylib")
    agent = start_agent(replace(settings(hub, tmp_path / "node"), cache=small_disk / "cache"))
    key = hub.give(ordered(hub, index, spec, IMPORT))
    fact = hub.wait_done(key, 60)
    assert "the disk of this node is full: free space in the folder of its cache" in fact.error, hub.log(
        key, ENVIRONMENT_LOG
    )
    assert fact.error_kind == "environment"
    assert not (agent.settings.environments / spec.digest).exists()

    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    again = hub.give(ordered(hub, index, spec, IMPORT))
    hub.wait_done(again, 60)
    assert hub.log(again) == b"1.0\n", hub.log(again, ENVIRONMENT_LOG)


def test_a_killed_uv_leaves_nothing_that_is_used(hub: FakeHub, agent: Agent, index: OrderIndex) -> None:
    index.add("tinylib")
    spec = locked(index, "tinylib")
    index.is_silent = True
    key = hub.give(ordered(hub, index, spec, IMPORT))
    hub.wait(lambda: any("simple" in path for path in index.requests), 60)
    (uv,) = [pid for pid in remaining_processes(key) if b"/uv\0pip\0install\0" in command_line(pid)]
    os.kill(uv, signal.SIGKILL)
    fact = hub.wait_done(key, 60)
    assert "uv was killed (signal 9)" in fact.error
    assert not (agent.settings.environments / spec.digest).exists()

    index.is_silent = False
    again = hub.give(ordered(hub, index, spec, IMPORT))
    hub.wait_done(again, 60)
    assert hub.log(again) == b"1.0\n", hub.log(again, ENVIRONMENT_LOG)
