"""Conda environments on a node: a real agent, rattler, channel, pip and index."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.node.runner import nobody
from tests.environments.conda_channel import CondaChannel
from tests.environments.package_index import PackageIndex
from tests.node.builders import script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.launch.test_hub_index import TICKET, OrderIndex
from tests.node.processes import child_pid, remaining_processes, wait_for_exit
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent

pytestmark = pytest.mark.slow
USE = """
import os, shutil, sys, base, ontop
print(sys.prefix, base.VERSION, ontop.VERSION)
print(os.environ["CONDA_PREFIX"], os.environ["CHANNEL_MARK"])
print(shutil.which("python"), shutil.which("where"), os.environ["PATH"].split(":")[1])
print(os.path.exists(f"{sys.prefix}/post-link-ran"))
"""


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CondaChannel]:
    made = CondaChannel(tmp_path_factory.mktemp("channel"))
    made.add_python()
    made.add_pip()
    made.add_module("base", "2.0")
    made.add("plain")
    made.index()
    with made.serving():
        yield made


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with PackageIndex(tmp_path_factory.mktemp("index")).serving() as served:
        served.add("ontop", "1.0", "base")
        yield served


@pytest.fixture
def spec(channel: CondaChannel, index: PackageIndex) -> EnvironmentSpec:
    sha256 = index.sha256("ontop-1.0-py3-none-any.whl")
    lock = f"--index-url {index.url}\nontop==1.0 \\\n    --hash=sha256:{sha256}\n"
    return channel.locked("python", "pip", "base", lock=lock)


@pytest.fixture
def served(channel: CondaChannel, index: PackageIndex, tmp_path: Path) -> Iterator[OrderIndex]:
    """The hub with all packages, while channel and index do not answer."""
    made = OrderIndex(tmp_path)
    made.login = f"trainhub:{TICKET}"
    for path in (*channel.folder.glob("*/*.tar.bz2"), *index.folder.glob("*.whl")):
        made.take(path)
    channel.is_silent = index.is_silent = True
    try:
        with made.serving():
            yield made
    finally:
        channel.is_silent = index.is_silent = False


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other accounts may pass through, as pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        end_children(folder)
        shutil.rmtree(folder)


def test_is_built_once_and_runs(hub: FakeHub, agent: Agent, spec: EnvironmentSpec) -> None:
    first = hub.give(script(hub, USE, environment=spec))
    fact = hub.wait_done(first, 120)
    log = hub.log(first, ENVIRONMENT_LOG).decode()
    assert not fact.error, (fact.error, log)
    second = hub.give(script(hub, USE, environment=spec))
    hub.wait_done(second, 20)
    folder = agent.settings.environments / spec.digest
    assert hub.log(first).decode().splitlines() == [
        f"{folder} 2.0 1.0",
        f"{folder} {folder}/mark",
        f"{folder}/bin/python {folder}/bin/where {folder}/bin",
        "False",
    ]
    assert hub.log(second) == hub.log(first)
    assert ENVIRONMENT_LOG not in hub.facts[second].logs
    assert "Downloaded 3 and installed 3 of 3 packages." in log
    assert "python has a script for conda to run after linking; it was not run." in log
    assert "--require-hashes" in log
    assert b"The environment was built in" in hub.log(first, PREPARATION_LOG)
    # Runs cannot write into it, so its modules are compiled.
    assert list(folder.glob("lib/python3.11/site-packages/__pycache__/base.*.pyc"))
    assert not list(folder.parent.glob("*.scratch"))


def test_is_built_by_an_account_of_its_own_from_the_hub_alone(
    hub: FakeHub,
    start_agent: Callable[..., Agent],
    spec: EnvironmentSpec,
    place: Path,
    served: OrderIndex,
) -> None:
    """Its tree is copied to root: links inside stay, and its paths are those of its final place. Channel and
    index do not answer."""
    options = settings(hub, place / "node", run_as=nobody(), python="/usr/bin/python3")
    start_agent(options)
    order = script(hub, USE, environment=spec)
    key = hub.give(replace(order, package_index=served.order_url, package_ticket=TICKET))
    fact = hub.wait_done(key, 120)
    folder = options.environments / spec.digest
    log = hub.log(key, ENVIRONMENT_LOG).decode()
    assert hub.log(key).decode().splitlines()[:2] == [f"{folder} 2.0 1.0", f"{folder} {folder}/mark"], (
        fact,
        log,
    )
    assert "Downloaded 3 and installed 3 of 3 packages." in log
    assert TICKET not in log
    assert (folder / "local").readlink() == Path()
    assert "is left out" not in log
    assert {path.lstat().st_uid for path in folder.rglob("*")} == {0}


class TestFailure:
    def test_of_the_hub_is_made_good_by_the_channel_or_named(
        self, hub: FakeHub, agent: Agent, channel: CondaChannel, tmp_path: Path
    ) -> None:
        served = OrderIndex(tmp_path)
        with served.serving():
            served.failures = {"plain-1.0-0.tar.bz2": "conda.example answers 404 Not Found"}
            for url, words in (
                (channel.url, "The packages of mine contain no Python."),
                ("http://127.0.0.1:9", "The hub could not get plain-1.0-0.tar.bz2 (conda.example answers"),
            ):
                order = script(hub, USE, environment=replace(channel, url=url).locked("plain"))
                key = hub.give(replace(order, package_index=served.order_url, package_ticket=TICKET))
                assert words in hub.wait_done(key, 60).error
                log = hub.log(key, ENVIRONMENT_LOG)
                assert b"plain-1.0-0.tar.bz2 does not come from the hub (Not Found)" in log

    def test_another_file_is_refused_and_leaves_nothing(
        self, hub: FakeHub, agent: Agent, channel: CondaChannel
    ) -> None:
        spec = channel.locked("base")
        (package,) = spec.conda["packages"]
        spec = replace(spec, conda={"packages": [{**package, "sha256": "0" * 64}]})
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 60)
        assert fact.error_kind == "environment"
        assert fact.error.startswith(
            "The conda packages of mine could not be installed: the file base-2.0-py_0.tar.bz2 of the "
            "channel is not the one that was locked: its hash differs. Make a new version"
        )
        assert not (agent.settings.environments / spec.digest).exists()

    def test_another_file_of_a_folder_is_refused(
        self, hub: FakeHub, agent: Agent, channel: CondaChannel
    ) -> None:
        spec = replace(channel, url=channel.folder.as_uri()).locked("base")
        (package,) = spec.conda["packages"]
        spec = replace(spec, conda={"packages": [{**package, "sha256": "0" * 64}]})
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 60)
        assert "is not the one that was locked: its hash differs" in fact.error

    def test_a_channel_that_is_gone_is_named(self, hub: FakeHub, agent: Agent, channel: CondaChannel) -> None:
        spec = replace(channel, url="http://127.0.0.1:9").locked("base")
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 60)
        assert fact.error.startswith(
            "The conda packages of mine could not be installed: this node cannot download "
            "base-2.0-py_0.tar.bz2 from http://127.0.0.1:9/noarch/base-2.0-py_0.tar.bz2; check its network"
        )

    def test_a_glibc_that_the_node_lacks(self, hub: FakeHub, agent: Agent, channel: CondaChannel) -> None:
        spec = channel.locked("base")
        (package,) = spec.conda["packages"]
        spec = replace(spec, conda={"packages": [{**package, "depends": ["__glibc >=9.9,<10"]}]})
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 60)
        assert "base needs glibc 9.9, and this node has 2." in fact.error

    def test_a_cancelled_or_killed_build_leaves_nothing_that_is_used(
        self, hub: FakeHub, agent: Agent, channel: CondaChannel
    ) -> None:
        spec = channel.locked("plain")
        folder = agent.settings.environments / spec.digest
        channel.is_silent = True
        try:
            first = hub.give(script(hub, USE, environment=spec))
            hub.wait_log(first, b"+ ", ENVIRONMENT_LOG, 60)
            hub.stops[first] = StopOrder(*first, grace_s=2, why="canceled")
            fact = hub.wait_done(first, 60)
            assert (fact.stopping, fact.error) == ("canceled", "")
            assert remaining_processes(first) == set()
            assert not folder.exists()

            second = hub.give(script(hub, USE, environment=spec))
            hub.wait_log(second, b"+ ", ENVIRONMENT_LOG, 60)
            os.kill(child_pid(agent.settings.attempts, second), signal.SIGKILL)
            wait_for_exit(agent.settings.attempts, second)
            hub.wait_done(second, 60)
            assert remaining_processes(second) == set()
        finally:
            channel.is_silent = False
        assert folder.exists()
        third = hub.give(script(hub, USE, environment=spec))
        # Built anew: what is missing is Python, not the package.
        assert hub.wait_done(third, 60).error == "The packages of mine contain no Python."
        assert not folder.exists()
