"""A hostile run beside another one, on a real agent in each mode."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.isolation import attempts
from tests.attacks.isolation.cloud_machine import cloud_machine
from tests.attacks.isolation.table import (
    CAN,
    CANNOT,
    COLUMNS,
    DOCKER,
    ENGINES,
    MODES,
    PERSON,
    PODMAN,
    ROOTLESS,
    ROOTLESS_PODMAN,
    documented,
)
from tests.attacks.server.separated import passable_python, uid_of
from tests.node.accounts import as_account, with_people
from tests.node.builders import environ, order, process, script
from tests.node.conftest import end_children
from tests.node.containers import images, place
from tests.node.containers.docker import private_docker
from tests.node.containers.rootless import private_rootless_podman
from tests.node.hub import OFFERED_PORT, FakeHub, Key
from trainhub_launch.states import StopReason
from trainhub_node import proc

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can separate runs"),
]
PROJECT = Path(__file__).resolve().parents[3]
ACCOUNT, AGENT_ACCOUNT = "nobody", "daemon"
# Not one of NVIDIA's names: every agent of this machine would report a GPU without a driver. A run sees no
# node that is not listed as its own, whatever its name.
GPU = Path("/dev/gpu-of-the-tests")
RESULTS = b"RESULTS "
RUN_AS = {"range": "range", PODMAN: "range", DOCKER: "range", "account": ACCOUNT, PERSON: PERSON}
PRIVATE_ENGINES = {
    PODMAN: images.private_podman,
    DOCKER: private_docker,
    ROOTLESS_PODMAN: private_rootless_podman,
}
# What the document says below its table.
EXCEPTIONS = {
    (PERSON, "Connect to the hub's broker on this machine"),
    (PERSON, "Read the metadata of a cloud's machine"),
}
# The disk of the agent, in memory: a run that fills it harms nobody else.
DISK_BYTES = 2**30


class Scene:
    """An agent in one mode, with a victim that runs on it. `folder` holds the agent, and a folder that stands
    for the hub's data."""

    def __init__(self, mode: str, hub: FakeHub, folder: Path, broker: int) -> None:
        self.mode, self.hub, self.folder, self.broker = mode, hub, folder, broker
        self.data, self.shared, self.program = folder / "data", folder / "shared", folder / "id"
        self.node = self.data / "node"
        # Where podman of the agent's account would have its images.
        self.engine = self.data / ".local/share/containers"
        self.abstract = secrets.token_hex(4)

    def prepare(self) -> None:
        for path, mode in ((self.data, 0o711), (self.shared, 0o777), (self.node, 0o711)):
            path.mkdir()
            path.chmod(mode)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=711", "tmpfs", self.node], check=True
        )
        (self.engine / "storage").mkdir(parents=True)
        for path in (self.data / "secret-key", self.node / "node.json"):
            path.write_text(json.dumps({"note": attempts.MARK}))
            path.chmod(0o600)
        shutil.copy("/usr/bin/id", self.program)
        self.program.chmod(0o4755)
        if self.mode in ROOTLESS:
            for path in (self.data, self.node, *self.data.glob("*"), *self.node.glob("*")):
                os.chown(path, uid_of(AGENT_ACCOUNT), -1)

    def remove(self) -> None:
        if os.path.ismount(self.node):
            subprocess.run(["umount", "-l", self.node], check=True)
        shutil.rmtree(self.folder)

    @contextmanager
    def agent(self) -> Iterator[None]:
        env = environ(self.hub, self.node) | {
            "TRAINHUB_NODE_RUN_AS": RUN_AS.get(self.mode, ""),
            "TRAINHUB_NODE_NAMESPACES": "off" if self.mode == "agent" else "",
            "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
            "TRAINHUB_NODE_HIDE": str(self.data),
            "HOME": str(self.data),
        }
        env |= place.current.variables
        python = passable_python(self.folder)
        env["LD_LIBRARY_PATH"] = str(Path(python).parent.parent / "lib")
        command = [python, "-m", "trainhub_node", "run", "--dir", str(self.node)]
        if self.mode in ROOTLESS:
            command = [*(place.current.before or as_account(AGENT_ACCOUNT)), *command]
        if self.mode == PERSON:
            command = [*with_people(self.folder), *command]
        running = subprocess.Popen(command, env=env, cwd=PROJECT, start_new_session=True)
        try:
            yield
        finally:
            running.kill()
            running.wait(10)
            end_children(self.node)

    def start_victim(self) -> dict[str, object]:
        """Starts the other run. Returns the names that the attempts know."""
        argv = ("python", "train.py", "the-victim")
        planned = process(0, argv, SECRET=attempts.MARK, ABSTRACT=self.abstract, MASTER_PORT=OFFERED_PORT)
        key = self.hub.give(order(self.hub, {"train.py": attempts.VICTIM}, planned, person="ada"))
        self.hub.wait_log(key, b"up", timeout_s=60)
        self.hub.wait(lambda: self.hub.facts[key].members[0].pid)
        printed = dict(line.split() for line in self.hub.log(key).decode().splitlines() if " " in line)
        pid = self.hub.facts[key].members[0].pid or 0
        assert proc.identity(pid)
        return {
            "victim": str(self.node / "attempts" / f"{key[0]}-{key[1]}"),
            "pid": pid,
            "address": int(printed["address"]),
            "port": int(printed["port"]),
            "own_port": int(printed["own_port"]),
            "broker": self.broker,
            "hub": str(self.data),
            "node": str(self.node),
            "shared": str(self.shared),
            "program": str(self.program),
            "gpu": str(GPU),
            "engine": str(self.engine),
        }

    def attack(self) -> dict[str, bool]:
        known = {"names": self.start_victim(), "mark": attempts.MARK, "attempts": attempts.ATTEMPTS}
        planned = process(0, ("python", "train.py"), ABSTRACT=self.abstract)
        source = {"train.py": attempts.HEAD, "known.json": json.dumps(known)}
        key = self.hub.give(order(self.hub, source, planned, person="ada"))
        self.hub.wait_done(key, 60)
        log = self.hub.log(key)
        assert RESULTS in log, log.decode()
        results: dict[str, bool] = json.loads(log.partition(RESULTS)[2].splitlines()[0])
        saved = [self.hub.blobs[file.sha256] for file in self.hub.facts[key].outputs]
        results[attempts.BY_LINK] = any(attempts.MARK.encode() in content for content in saved)
        # Beside each other, but for those that wait for the agent to look at the disk.
        disk = (attempts.DISK_LIMIT, attempts.DISK)
        keys = {name: self._start_greedy(name) for name in attempts.GREEDY if name not in disk}
        results |= {name: self._was_greedy(name, key) for name, key in keys.items()}
        results |= {name: self._was_greedy(name, self._start_greedy(name)) for name in disk}
        return results

    def _start_greedy(self, name: str) -> Key:
        asked = script(self.hub, attempts.GREEDY[name], grace_s=1, person="ada")
        if name == attempts.DISK_LIMIT:
            asked = replace(asked, disk_bytes=128 * attempts.MIB)
        # No run with limits of memory is placed on a node that cannot hold it to them.
        elif name != attempts.DISK and self.mode not in ROOTLESS:
            asked = replace(
                asked, memory_bytes=128 * attempts.MIB, cpus=0.1 if name == attempts.CPU else None
            )
        return self.hub.give(asked)

    def _was_greedy(self, name: str, key: Key) -> bool:
        fact = self.hub.wait_done(key, 90)
        if name in (attempts.DISK, attempts.DISK_LIMIT) and fact.stopping != StopReason.DISK:
            return True  # on a full disk it cannot even say so
        return b"reached" in self.hub.log(key)


@pytest.fixture(scope="module")
def gpu() -> Iterator[None]:
    """A device node that stands for a GPU: without a driver the kernel has none."""
    null = Path("/dev/null").stat().st_rdev
    if GPU.exists() and GPU.stat().st_rdev != null:
        pytest.skip(f"{GPU} is a real one")
    # What an interrupted test has left stands for a GPU as well.
    GPU.unlink(missing_ok=True)
    os.mknod(GPU, 0o666 | stat.S_IFCHR, null)
    GPU.chmod(0o666)
    yield
    GPU.unlink()


@contextmanager
def in_container(mode: str) -> Iterator[Path]:
    """Runs of this scene are in containers of an engine, whose folder this yields."""
    folder = Path(tempfile.mkdtemp(prefix="engine-", dir="/var/lib"))
    with PRIVATE_ENGINES[mode](folder) as engine, pytest.MonkeyPatch.context() as patch:
        engine.make_image(images.make_root(folder / "root"))
        patch.setattr(place, "current", place.in_containers_of(engine))
        yield folder


# Docker's containers differ little from podman's. For the others see test_rootless.py, test_person.py and
# test_range.py in tests/node.
AGAIN = (DOCKER, ROOTLESS_PODMAN, PERSON, "range")
EVERY_MODE = [
    pytest.param(mode, marks=pytest.mark.long if mode in AGAIN else ()) for mode in (*MODES, PERSON, *ENGINES)
]


@pytest.fixture(scope="module", params=EVERY_MODE)
def outcome(request: pytest.FixtureRequest, gpu: None) -> Iterator[tuple[str, dict[str, bool]]]:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-breakout-", dir="/var/lib"))
    folder.chmod(0o711)
    mode = request.param
    with ExitStack() as stack:
        broker = stack.enter_context(cloud_machine())
        hub = stack.enter_context(FakeHub().serving())
        hub.config = {
            "broker_url": f"redis://127.0.0.1:{broker}/0",
            "queue": "node.here",
            "hub_time": time.time(),
        }
        scene = Scene(mode, hub, folder, broker)
        stack.callback(scene.remove)
        scene.prepare()
        # Only now: what is mounted later, Podman of an account does not see on every machine.
        if mode in ENGINES:
            scene.engine = stack.enter_context(in_container(mode))
        stack.enter_context(scene.agent())
        yield mode, scene.attack()


@pytest.mark.parametrize("row", attempts.ROWS)
def test_a_run_can_do_what_the_document_says_and_nothing_else(
    outcome: tuple[str, dict[str, bool]], row: str
) -> None:
    mode, results = outcome
    expected = CAN if (mode, row) in EXCEPTIONS else documented()[COLUMNS.get(mode, mode), row]
    assert (CAN if results[row] else CANNOT) == expected, (mode, row)
