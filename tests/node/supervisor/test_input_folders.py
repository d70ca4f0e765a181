"""The data that a run reads where it lies: its ranks see it, also below /tmp and in a container, and the node
looks at it before they start."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.node.builders import order, process
from tests.node.hub import FakeHub, Key
from tests.node.test_range import range_settings
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import Reference
from trainhub_launch.states import ErrorKind, RankState
from trainhub_node.agent import Agent
from trainhub_node.containers.engine import DOCKER, PODMAN
from trainhub_node.data import account_process, input_folders
from trainhub_node.supervisor.gang import Gang, PreparationFailed

READ = """
import os, sys
path = sys.argv[1]
assert path == os.environ['TRAINHUB_INPUT_BIRDS']
file = path if os.path.isfile(path) else path + '/labels.txt'
print(open(file).read())
try:
    open(file, 'a')
except OSError as error:
    print('not written:', error.strerror)
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder below /tmp, where runs in namespaces see nothing of the machine's, that everybody can read."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-data-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "birds").mkdir()
    (folder / "birds" / "labels.txt").write_text("sparrow")
    (folder / "birds" / "labels.txt").chmod(0o666)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def reading(hub: FakeHub, path: object) -> NodeOrder:
    birds = Reference("launch", "input_birds")
    rank = process(0, ("python", "train.py", "$TRAINHUB_INPUT_BIRDS"), TRAINHUB_INPUT_BIRDS=birds)
    return replace(order(hub, {"train.py": READ}, rank), inputs={"birds": str(path)})


def refusal(hub: FakeHub, path: object) -> str:
    fact = hub.wait_done(hub.give(reading(hub, path)))
    assert fact.error_kind == ErrorKind.DATA
    assert [member.state for member in fact.members] == [RankState.WAITING]
    return fact.error


@pytest.mark.in_containers(PODMAN, DOCKER)
class TestRanks:
    def test_read_a_folder_and_never_write_into_it(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, data: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        assert self.log_of(hub, data / "birds") == ["sparrow", "not written: Read-only file system"]

    def test_read_one_file(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, data: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        assert self.log_of(hub, data / "birds" / "labels.txt")[0] == "sparrow"

    def test_read_through_a_link(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, data: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        link = data / "newest"
        link.symlink_to(data / "birds")
        assert self.log_of(hub, link)[0] == "sparrow"

    def log_of(self, hub: FakeHub, path: Path) -> list[str]:
        key: Key = hub.give(reading(hub, path))
        fact = hub.wait_done(key)
        assert not fact.error
        return hub.log(key).decode().splitlines()


class TestProblems:
    def test_what_is_not_there_ends_the_run_with_its_path(
        self, hub: FakeHub, agent: Agent, data: Path
    ) -> None:
        assert refusal(hub, data / "cats") == (
            f"Input birds: {data}/cats on node here is not there: mount its file system on that node, or "
            "choose nodes that have it."
        )

    def test_what_the_account_of_the_run_cannot_read(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, data: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        (data / "birds").chmod(0o700)
        sentence = refusal(hub, data / "birds")
        assert f"{data}/birds on node here cannot be read by the account of this run (user " in sentence

    def test_the_agents_own_folder_stays_hidden_also_behind_a_link(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, data: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        reachable.chmod(0o755)
        (data / "link").symlink_to(reachable)
        for path in (reachable, data / "link"):
            assert f"lies in {reachable}, of which runs see nothing" in refusal(hub, path)

    @pytest.mark.in_containers(PODMAN)
    def test_a_folder_around_the_agents_own_is_not_mounted_into_a_container(
        self,
        hub: FakeHub,
        start_agent: Callable[..., Agent],
        reachable: Path,
        request: pytest.FixtureRequest,
    ) -> None:
        start_agent(range_settings(hub, reachable / "inner"))
        (reachable / "labels.txt").write_text("sparrow")
        reachable.chmod(0o755)
        is_in_container = request.node.callspec.params["_place"] == PODMAN
        if is_in_container:
            assert f"contains {reachable}/inner, of which runs see nothing" in refusal(hub, reachable)
        else:
            key = hub.give(reading(hub, reachable))
            assert not hub.wait_done(key).error

    def test_a_file_server_that_is_gone_holds_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(account_process, "ANSWER_TIMEOUT_S", 0.1)
        monkeypatch.setattr(account_process, "POLL_S", 0.05)
        monkeypatch.setattr(input_folders, "_examine", lambda path: time.sleep(60))
        terms: dict[str, object] = {"node": "here", "account": None, "hidden": []}
        gang = cast(
            "Gang", SimpleNamespace(input_paths={"birds": "/mnt"}, terms=terms, check_stop=lambda: None)
        )
        with pytest.raises(PreparationFailed, match="does not answer within 0 s: is its file server there"):
            input_folders.check_inputs(gang)

    def test_an_unknown_fault_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(input_folders, "_examine", lambda path: path.missing)
        terms: dict[str, object] = {"node": "here", "account": None, "hidden": []}
        gang = cast("Gang", SimpleNamespace(input_paths={"birds": "/mnt"}, terms=terms))
        with pytest.raises(PreparationFailed, match="here could not be examined"):
            input_folders.check_inputs(gang)
