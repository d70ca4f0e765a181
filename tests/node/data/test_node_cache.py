"""What an agent removes of the trees that runs have seen."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.builders import settings
from tests.node.hub import FakeHub
from trainhub_node.attempts.attempt_list import Attempts
from trainhub_node.data.node_cache import DataKeeper, node_cache
from trainhub_node.rundir import RunDir


@pytest.fixture
def attempts(hub: FakeHub, tmp_path: Path) -> Iterator[Attempts]:
    own = settings(hub, tmp_path / "node")
    own.attempts.mkdir(parents=True)
    value = Attempts(own)
    yield value
    value.close()


@pytest.fixture
def keeper(hub: FakeHub, tmp_path: Path, attempts: Attempts) -> Iterator[DataKeeper]:
    value = DataKeeper(settings(hub, tmp_path / "node"), attempts, command=())
    yield value
    value.close()


def tree_of(hub: FakeHub, tmp_path: Path, folder: RunDir) -> Path:
    tree = Path(node_cache(settings(hub, tmp_path / "node")).tree(Path(folder.path).name))
    (tree / "birds").mkdir(parents=True)
    return tree


def test_trees_of_attempts_that_are_over_are_removed_and_those_of_another_agent_stay(
    hub: FakeHub, tmp_path: Path, attempts: Attempts, keeper: DataKeeper
) -> None:
    """Agents in containers may have one name, one folder as they see it, and one cache."""
    over, running, elsewhere = (attempts.folder(uuid.uuid4().hex, 1) for _ in range(3))
    trees = [tree_of(hub, tmp_path, folder) for folder in (over, running, elsewhere)]
    for folder in (over, running):
        Path(folder.path).mkdir()
    attempts.track(running)
    keeper.sweep()
    assert [tree.exists() for tree in trees] == [False, True, True]
