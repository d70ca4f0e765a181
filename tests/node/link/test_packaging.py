"""What a machine installs: a wheel without Django that joins a real hub over TLS, trains, and can be turned
away."""

from __future__ import annotations

import os
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hub import PROJECT, Hub, eventually, free_port
from tests.journeys.runs import Runs
from tests.node.link import installed

pytestmark = pytest.mark.slow
Command = Callable[..., subprocess.CompletedProcess[str]]
CLUSTER = "lab"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.install(wheel, tmp_path_factory.mktemp("node") / "venv")


def test_the_wheel_needs_what_the_hubs_requirements_allow() -> None:
    """One range each, in requirements.txt: the hub and its nodes are tried together."""
    existing = (PROJECT / "requirements.txt").read_text().splitlines()
    assert [line for line in installed.requirements() if line.replace("[redis]", "") not in existing] == []


def test_the_wheel_holds_both_packages_whole(wheel: Path) -> None:
    reserved = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    of_the_project = {
        str(path.relative_to(PROJECT))
        for name in ("trainhub_launch", "trainhub_node")
        for path in (PROJECT / name).rglob("*.py")
    }
    assert reserved == of_the_project


class Node:
    """Commands and the agent of one machine, installed from the wheel."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        self.log = folder.with_suffix(".log")
        self._program = programs / "trainhub-node"
        self._agents: list[subprocess.Popen[bytes]] = []
        stored = ("PATH", "HOME", "LANG", "TMPDIR")
        self._env = {name: os.environ[name] for name in stored if name in os.environ}

    def do(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self._program), *words, "--dir", str(self.folder)]
        return subprocess.run(
            argv, capture_output=True, text=True, env=self._env, cwd="/", timeout=60, check=False
        )

    def run(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            argv = [str(self._program), "run", "--dir", str(self.folder)]
            agent = subprocess.Popen(
                argv, env=self._env, cwd="/", stdout=log, stderr=log, start_new_session=True
            )
        self._agents.append(agent)
        return agent

    def message(self) -> str:
        return self.log.read_text()

    def close(self) -> None:
        for agent in self._agents:
            agent.send_signal(signal.SIGKILL)
            agent.wait(10)


@pytest.fixture
def machine(programs: Path, tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    with ExitStack() as stack:

        def make(name: str) -> Node:
            node = Node(programs, tmp_path / name)
            stack.callback(node.close)
            return node

        yield make


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """TLS by an authority of its own, its Valkey on TCP."""
    value = Hub(tmp_path_factory.mktemp("open") / "data", OPEN="1", BROKER_BIND=f"127.0.0.1:{free_port()}")
    try:
        yield value.start()
    finally:
        value.stop()


def invite(hub: Hub, name: str) -> str:
    return hub.manage("node", "token", name, "--cluster", CLUSTER).stdout.split()[0]


def test_has_no_django(programs: Path) -> None:
    done = subprocess.run(
        [
            programs / "python",
            "-c",
            "import trainhub_node.__main__, sys, importlib.util as u; "
            "print(u.find_spec('django'), sorted(name for name in sys.modules if name.startswith('django')))",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip() == "None []"


def test_a_machine_joins_trains_and_is_turned_away(open_hub: Hub, machine: Callable[[str], Node]) -> None:
    token, node = invite(open_hub, "gpu-7"), machine("gpu-7")
    joined = node.do("join", open_hub.url, "--token", token, "--slots", "2")
    assert joined.returncode == 0, joined.stderr
    agent = node.run()
    runs = Runs(open_hub)
    eventually(lambda: runs.get("/nodes/gpu-7/")["status"] == "ready")
    eventually(lambda: "://node.gpu-7:**@" in node.message(), what="the node listens for wake-ups")

    run = runs.script("print('from afar')", resources={"cluster": CLUSTER})

    assert runs.ended(run)["state"] == "Completed"
    assert runs.log(run) == b"from afar\n"
    status = node.do("status")
    assert status.returncode == 0, status.stdout
    assert f"{open_hub.url} accepts this node as gpu-7 of cluster {CLUSTER}" in status.stdout

    open_hub.manage("node", "revoke", "gpu-7")

    eventually(
        lambda: "This node takes no more runs" in node.message(), what="the agent says that it was revoked"
    )
    assert "does not accept this node" in node.do("status").stdout
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 0


def test_a_token_works_once(open_hub: Hub, machine: Callable[[str], Node]) -> None:
    token = invite(open_hub, "once")
    assert machine("first").do("join", open_hub.url, "--token", token).returncode == 0

    second = machine("second")
    again = second.do("join", open_hub.url, "--token", token)

    assert again.returncode == 1
    assert "used already" in again.stderr
    assert not second.folder.exists()


def test_a_name_is_taken_once(open_hub: Hub, machine: Callable[[str], Node]) -> None:
    first = machine("first")
    assert first.do("join", open_hub.url, "--token", invite(open_hub, "taken")).returncode == 0
    first.run()
    eventually(lambda: Runs(open_hub).get("/nodes/taken/")["status"] == "ready")

    other = machine("other").do("join", open_hub.url, "--token", invite(open_hub, "taken"))

    assert other.returncode == 1
    assert "taken is joined already" in other.stderr


def test_a_wrong_fingerprint_sends_nothing(open_hub: Hub, machine: Callable[[str], Node]) -> None:
    secret, _, fingerprint = invite(open_hub, "pinned").partition(".")
    assert len(fingerprint) == 64

    refused = machine("pinned").do("join", open_hub.url, "--token", f"{secret}.{fingerprint[::-1]}")

    assert refused.returncode == 1
    assert "somebody may stand between" in refused.stderr
    assert machine("pinned").do("join", open_hub.url, "--token", f"{secret}.{fingerprint}").returncode == 0
