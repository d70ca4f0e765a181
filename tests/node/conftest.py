from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.harness import guard
from tests.node.builders import settings
from tests.node.containers import images, place
from tests.node.containers.docker import Docker, private_docker
from tests.node.containers.rootless import RootlessPodman, private_rootless_podman
from tests.node.hub import FakeHub
from tests.node.processes import forget_rules
from trainhub_launch.machine import Interpreter
from trainhub_node import records
from trainhub_node.agent import Agent
from trainhub_node.attempts import crash_cleanup
from trainhub_node.containers.engine import PODMAN
from trainhub_node.machine import interpreters
from trainhub_node.machine.interpreters import find_interpreters
from trainhub_node.run_account import Account
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry import heartbeat


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("in_containers")
    if mark is not None:
        metafunc.parametrize("_place", (place.NODE, *(mark.args or (PODMAN,))), indirect=True)


@pytest.fixture(autouse=True)
def _place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    name = getattr(request, "param", place.NODE)
    if name != place.NODE:
        _use_engine(name, request, monkeypatch)


@cache
def _found_once(default: str, account: Account | None) -> tuple[Interpreter, ...]:
    return find_interpreters(default, account)


@pytest.fixture(autouse=True)
def _interpreters_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each agent starts all Pythons of the machine, under the account of runs, to ask for their versions. For
    that, the process of the tests has to be copied, which takes it a tenth of a second for each."""
    monkeypatch.setattr(interpreters, "find_interpreters", _found_once)


@pytest.fixture
def in_container(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> images.PrivateEngine:
    """Ranks of this test run in containers. Returns the engine: podman, or the one of the parameter."""
    return _use_engine(getattr(request, "param", PODMAN), request, monkeypatch)


def _use_engine(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> images.PrivateEngine:
    engine: images.PrivateEngine = request.getfixturevalue(name)
    for variable, value in engine.variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(place, "current", place.in_containers_of(engine))
    # Each agent would try the engine first; tests of that do so once.
    monkeypatch.setattr(heartbeat, "try_engine", lambda settings, previous: previous)
    return engine


@pytest.fixture(scope="session")
def image_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the image that engines have."""
    return images.make_root(tmp_path_factory.mktemp("image") / "root")


@pytest.fixture(scope="session")
def podman(image_root: Path) -> Iterator[images.Podman]:
    """Podman with an image of its own."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-podman-", dir="/var/lib"))
    guard.on_exit("umount", "-l", str(folder / "store/overlay"))
    guard.on_exit("rm", "-rf", str(folder))
    with images.private_podman(folder) as engine:
        engine.make_image(image_root)
        yield engine


@pytest.fixture(scope="session")
def docker(image_root: Path) -> Iterator[Docker]:
    """Docker with an image of its own."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-docker-", dir="/var/lib"))
    with private_docker(folder) as engine:
        engine.make_image(image_root)
        yield engine


@pytest.fixture(scope="session")
def rootless_podman(image_root: Path) -> Iterator[RootlessPodman]:
    """The same for an account that is not root."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-rootless-podman-", dir="/var/lib"))
    with private_rootless_podman(folder) as engine:
        engine.make_image(image_root)
        yield engine


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub().serving() as value:
        yield value


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder for an agent that other accounts can reach, as pytest's own folders cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-", dir="/var/lib"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start_agent(hub: FakeHub, tmp_path: Path, reachable: Path) -> Iterator[Callable[..., Agent]]:
    """Starts an agent in this process; every one is closed at the end, and what it started is ended: before
    the folders go, in which they write."""
    with ExitStack() as stack:
        for folder in (tmp_path, reachable):
            stack.callback(end_children, folder)

        def start(options: NodeSettings | None = None) -> Agent:
            agent = Agent(options or settings(hub, tmp_path / "node"))
            thread = threading.Thread(target=agent.run, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(forget_rules, f"{agent.settings.name} {agent.settings.folder}")
            stack.callback(agent.close)
            return agent

        yield start


@pytest.fixture
def agent(start_agent: Callable[..., Agent]) -> Agent:
    return start_agent()


def end_children(folder: Path) -> None:
    """Children outlive their agent, and those that wait for a final order would wait for ever."""
    for record in folder.rglob("child.json"):
        crash_cleanup.kill_all(RunDir.at(str(record.parent)), records.read(str(record))["pid"])
