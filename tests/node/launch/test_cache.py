from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.node.builders import order, process, script, settings, snapshot
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent
from trainhub_node.environments.build_process import _without_password
from trainhub_node.launch import cache
from trainhub_node.launch.cache import SnapshotCache
from trainhub_node.launch.folders import prepare_folders
from trainhub_node.link.hub_client import HubClient
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal


@pytest.fixture
def node(hub: FakeHub, tmp_path: Path) -> NodeSettings:
    node_settings = settings(hub, tmp_path / "node")
    prepare_folders(node_settings)
    return node_settings


class TestSnapshots:
    def test_are_fetched_once(self, hub: FakeHub, agent: Agent) -> None:
        node_settings = script(hub, "print('x')")
        hub.wait_done(hub.give(node_settings))
        hub.blobs.pop(node_settings.snapshot)

        again = order(hub, {"train.py": "print('x')"}, process(0, ("python", "train.py")))

        assert again.snapshot == node_settings.snapshot
        hub.blobs.pop(node_settings.snapshot)
        assert hub.wait_done(hub.give(again)).members[0].exit_code == 0

    @pytest.mark.parametrize("left_over", [b"", b"first half"])
    def test_go_on_where_an_earlier_try_left_off(
        self, hub: FakeHub, node: NodeSettings, left_over: bytes
    ) -> None:
        sha256 = hub.store(left_over + b" and the rest")
        (node.snapshots / f"{sha256}.part").write_bytes(left_over)

        path = SnapshotCache(node, HubClient(hub.url, node.token)).fetch(sha256)

        assert path.read_bytes() == left_over + b" and the rest"

    def test_executable_files_stay_executable(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(order(hub, {"run.sh": "#!/bin/sh\necho ran\n"}, process(0, ("./run.sh",))))

        hub.wait_done(key)

        assert hub.log(key) == b"ran\n"


class TestTrim:
    def test_takes_the_least_recently_used_first(self, hub: FakeHub, node: NodeSettings) -> None:
        old, new = (snapshot(hub, {name: os.urandom(5000)}) for name in ("old", "new"))
        snapshots = SnapshotCache(node, HubClient(hub.url, node.token))
        for sha256, age in ((old, 100), (new, 0)):
            os.utime(snapshots.fetch(sha256), (time.time() - age, time.time() - age))
        tight = type(node)(**{**vars(node), "cache_bytes": 8000})

        removed = cache.trim(tight)

        assert removed == [node.snapshots / f"{old}.zip"]
        assert [path.name for path in node.snapshots.glob("*.zip")] == [f"{new}.zip"]


class TestOldAttempts:
    def test_are_deleted_only_when_settled_long_ago(self, hub: FakeHub, agent: Agent) -> None:
        settled = hub.give(script(hub, "print('x')"))
        hub.wait(lambda: settled in hub.settled)
        hub.auto_settle = False
        open_still = hub.give(script(hub, "print('y')"))
        hub.wait_done(open_still)

        now = time.time()
        assert agent.attempts.discard_old(now=now, retention_s=3600) == []
        assert agent.attempts.discard_old(now=now + 7200, retention_s=3600) == [f"{settled[0]}-1"]
        assert [path.name for path in agent.settings.attempts.iterdir()] == [f"{open_still[0]}-1"]


class TestDiscard:
    def test_does_not_follow_links(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "file").write_text("x")
        (tmp_path / "gone" / "a").mkdir(parents=True)
        (tmp_path / "gone" / "a" / "link").symlink_to(tmp_path / "kept")

        removal.remove_tree(str(tmp_path / "gone"))
        removal.remove_tree(str(tmp_path / "gone"))

        assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
        assert (tmp_path / "kept" / "file").exists()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("https://me:secret@index.example/simple", "https://****@index.example/simple"),
        ("https://index.example/simple", "https://index.example/simple"),
        ("https://index.example/a@b", "https://index.example/a@b"),
        ("torch==2.13.0", "torch==2.13.0"),
    ],
)
def test_a_password_in_an_index_url_is_not_shown(item: str, text: str) -> None:
    assert _without_password(item) == text
