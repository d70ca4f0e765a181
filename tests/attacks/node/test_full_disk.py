"""A full disk while a source is unpacked or an environment is built: nothing half-made stays, and the run
says why."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.node.runner import needs_root, nobody
from tests.node.builders import order, process, script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.link import wheels
from trainhub_launch.order import EnvironmentSpec
from trainhub_node.agent import Agent
from trainhub_node.launch import unpack
from trainhub_node.launch.cache import SnapshotCache
from trainhub_node.launch.folders import prepare_folders
from trainhub_node.link.hub_client import HubClient

pytestmark = needs_root
SMALL = 4 * 1024 * 1024


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    disk = open_folder / "disk"
    disk.mkdir()
    options = f"size={SMALL},mode=711"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield disk
    finally:
        end_children(disk)
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("account", [None, nobody()], ids=["same-account", "run-as"])
def test_a_source_that_does_not_fit_leaves_nothing(small_disk: Path, tmp_path: Path, account: object) -> None:
    archive = tmp_path / "source.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for number in range(8):
            zipped.writestr(f"d{number}/file", os.urandom(SMALL // 4))

    with pytest.raises(OSError, match="No space left"):
        unpack.unpack_snapshot(archive, small_disk / "work", account)  # type: ignore[arg-type]

    assert list(small_disk.iterdir()) == []


def test_a_download_that_does_not_fit_leaves_nothing(hub: FakeHub, small_disk: Path, tmp_path: Path) -> None:
    node = settings(hub, tmp_path / "node", cache=small_disk)
    prepare_folders(node)
    sha256 = hub.store(os.urandom(2 * SMALL))

    with pytest.raises(OSError, match="No space left"):
        SnapshotCache(node, HubClient(hub.url, node.token)).fetch(sha256)

    assert list(node.snapshots.iterdir()) == []


@pytest.mark.slow
def test_an_environment_that_does_not_fit_is_refused_and_leaves_nothing(
    hub: FakeHub, start_agent: Callable[..., Agent], open_folder: Path, small_disk: Path
) -> None:
    spec = EnvironmentSpec(name="tiny", version="1", kind="venv", requirements=(wheels.make(open_folder),))
    node = settings(
        hub, open_folder / "node", cache=small_disk / "cache", run_as=nobody(), python="/usr/bin/python3"
    )
    start_agent(node)
    key = hub.give(script(hub, "print('x')", environment=spec))

    fact = hub.wait_done(key, 120)

    end_children(open_folder)
    assert fact.error_kind == "environment"
    assert sorted(path.name for path in node.environments.iterdir()) == [".builders", f"{spec.digest}.lock"]
    assert shutil.disk_usage(small_disk).used < SMALL // 10


def test_a_run_whose_source_does_not_fit_says_so(
    hub: FakeHub, start_agent: Callable[..., Agent], open_folder: Path, small_disk: Path
) -> None:
    node = settings(
        hub, small_disk / "node", cache=open_folder / "cache", run_as=nobody(), python="/usr/bin/python3"
    )
    start_agent(node)
    key = hub.give(
        order(hub, {"large": os.urandom(2 * SMALL), "train.py": ""}, process(0, ("python", "train.py")))
    )

    fact = hub.wait_done(key, 60)

    assert fact.error_kind == "snapshot"
    assert fact.error.startswith("No space left on device (")
