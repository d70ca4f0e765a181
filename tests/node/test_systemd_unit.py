"""An agent as a service of systemd, from `trainhub-node unit`: its runs and their limits outlive it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import environ, script
from tests.node.hub import FakeHub, Key
from tests.node.supervisor.test_survival import COUNTING, check_whole, release_ranks
from trainhub_node import systemd

pytestmark = pytest.mark.skipif(
    os.environ.get("TRAINHUB_TEST_VIRTUAL_MACHINE") != "systemd",
    reason="installs a service, so it needs a virtual machine (make test-cgroup2)",
)
MIB = 2**20
EAT_LATER = COUNTING + "held = [bytearray(2**20) for _ in range(200)]\n"


def systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-unit-", dir="/var/lib"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def service(hub: FakeHub, folder: Path) -> Iterator[str]:
    """The running service."""
    variables = environ(hub, folder) | {
        "TRAINHUB_NODE_RUN_AS": "range",
        "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
    }
    lines = [
        f"Environment={systemd.quote_unit_word(f'{name}={value}')}\n" for name, value in variables.items()
    ]
    unit = Path("/etc/systemd/system", systemd.NAME)
    unit.write_text(systemd.unit(folder).replace("[Service]\n", f"[Service]\n{''.join(lines)}"))
    systemctl("daemon-reload")
    systemctl("start", systemd.NAME)
    yield systemd.NAME
    systemctl("stop", systemd.NAME)
    unit.unlink()
    systemctl("daemon-reload")


def group_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::")


def start_run(hub: FakeHub, code: str, text: bytes = b"line 10\n") -> Key:
    key = hub.give(replace(script(hub, code), memory_bytes=64 * MIB, cpus=0.5))
    hub.wait_log(key, text)
    hub.wait(lambda: hub.facts[key].members[0].pid)
    return key


def check_limits(hub: FakeHub, key: Key) -> None:
    group = group_of(hub.facts[key].members[0].pid or 0)
    assert group.startswith("/trainhub.slice/")
    folder = Path(f"/sys/fs/cgroup{group}")
    assert (folder / "memory.max").read_text() == f"{64 * MIB}\n"
    assert (folder / "cpu.max").read_text() == "50000 100000\n"
    assert (folder / "pids.max").read_text() == "4096\n"


def test_a_run_outlives_its_service_and_keeps_its_limits(hub: FakeHub, service: str, folder: Path) -> None:
    key = start_run(hub, EAT_LATER)
    check_limits(hub, key)

    # What makes systemd look at the groups again.
    for words in (("restart", service), ("daemon-reload",), ("stop", service), ("daemon-reexec",)):
        systemctl(*words)
        check_limits(hub, key)
    systemctl("start", service)
    check_limits(hub, key)
    release_ranks(folder / "attempts", key)
    fact = hub.wait_done(key)

    check_whole(hub, folder / "attempts", key)
    assert fact.members[0].out_of_memory
    assert any("64 MiB" in warning for warning in fact.warnings)
    assert systemctl("is-active", service) == "active"


def test_a_run_that_starts_after_the_service_has_restarted_is_limited_too(
    hub: FakeHub, service: str, folder: Path
) -> None:
    systemctl("restart", service)
    key = start_run(hub, COUNTING)
    check_limits(hub, key)
    release_ranks(folder / "attempts", key)
    assert hub.wait_done(key).members[0].exit_code == 0
