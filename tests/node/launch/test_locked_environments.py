"""Environments with a lock: exactly the locked files are installed, and an agent of the version before
installs the pinned requirements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.environments.package_index import PackageIndex
from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_node.agent import Agent
from trainhub_node.environments.pip import hash_mismatch

USE = "import tinylib\nprint(tinylib.VERSION)\n"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    folder = tmp_path / "index"
    folder.mkdir()
    with PackageIndex(folder).serving() as served:
        yield served


def locked(index: PackageIndex, sha256: str) -> EnvironmentSpec:
    lock = f"--index-url {index.url}\ntinylib==1.0 \\\n    --hash=sha256:{sha256}\n    # via -r x\n"
    return EnvironmentSpec(
        "tiny", "1", "venv", requirements=("tinylib==1.0",), index_urls=(index.url,), lock=lock
    )


@pytest.mark.slow
class TestBuild:
    def test_installs_the_locked_files(self, hub: FakeHub, agent: Agent, index: PackageIndex) -> None:
        spec = locked(index, index.add("tinylib"))
        # A newer version and another file change nothing.
        index.add("tinylib", "2.0")
        key = hub.give(script(hub, USE, environment=spec))
        fact = hub.wait_done(key, 120)
        assert hub.log(key) == b"1.0\n", (fact, hub.log(key, ENVIRONMENT_LOG))
        assert b"--require-hashes" in hub.log(key, ENVIRONMENT_LOG)
        assert (agent.settings.environments / spec.digest).exists()

    def test_refuses_another_file_and_leaves_nothing(
        self, hub: FakeHub, agent: Agent, index: PackageIndex
    ) -> None:
        index.add("tinylib")
        spec = locked(index, "0" * 64)
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 120)
        assert fact.error_kind == "environment"
        assert fact.error.startswith(
            "The locked packages of tiny could not be installed: the file of tinylib==1.0 on the index is "
            "not the one that was locked: its hash differs. Make a new version"
        )
        assert not (agent.settings.environments / spec.digest).exists()

    def test_never_builds_from_source(self, hub: FakeHub, agent: Agent, index: PackageIndex) -> None:
        index.add_source("tinylib")
        spec = locked(index, index.sha256("tinylib-1.0.tar.gz"))
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 120)
        assert fact.error.startswith("The locked packages of tiny could not be installed: ERROR: ")
        assert not any(path.endswith(".tar.gz") for path in index.requests)

    def test_an_agent_without_locks_installs_the_pins(
        self, hub: FakeHub, agent: Agent, index: PackageIndex
    ) -> None:
        index.add("tinylib")
        index.add("tinylib", "2.0")
        # What such an agent reads of the order: all fields but the lock.
        spec = replace(locked(index, "0" * 64), lock="")
        key = hub.give(script(hub, USE, environment=spec))
        hub.wait_done(key, 120)
        assert hub.log(key) == b"1.0\n"


class TestDigest:
    def test_covers_the_lock_and_is_unchanged_without_one(self) -> None:
        plain = EnvironmentSpec("a", "1", "venv", requirements=("x==1",))
        # As agents of earlier versions name the folder, whose environments stay valid.
        assert plain.digest == "16737b2e39e83544467d"
        one, other = (replace(plain, lock=f"x==1 --hash=sha256:{digit * 64}") for digit in "ab")
        assert len({plain.digest, one.digest, other.digest}) == 3

    def test_an_order_without_a_lock_looks_as_before(self) -> None:
        plain = EnvironmentSpec("a", "1", "venv", requirements=("x==1",))
        assert "lock" not in plain.to_json()
        assert EnvironmentSpec.from_json(plain.to_json()) == plain
        locked_one = replace(plain, lock="x==1")
        assert EnvironmentSpec.from_json(locked_one.to_json()) == locked_one


def test_other_output_of_pip_is_no_mismatch() -> None:
    assert hash_mismatch(["ERROR: No matching distribution found for x"]) == ""
