"""A node tests datastores and lists their files, and brings what it has found to the hub."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.node.builders import environ
from tests.node.hub import FakeHub
from tests.node.probing.results import TICKET, Results
from tests.node.processes import agent_process
from tests.node.test_range import range_settings
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.stores import S3, SignIn, Store
from trainhub_launch.errors import WireError
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_launch.order import EnvironmentSpec, NodeOrder, OrderKind
from trainhub_launch.plan import NodeCommand
from trainhub_launch.report import AttemptFact
from trainhub_node.agent import Agent
from trainhub_node.intake import orders

SECRET_KEY = "datastore:s3-key"


def probe_order(results: Results, work: str, **read: Any) -> NodeOrder:
    return NodeOrder(
        run=uuid.uuid4().hex,
        attempt=1,
        command=NodeCommand("here", 0, "127.0.0.1", ()),
        environment=EnvironmentSpec("none", "", "none"),
        snapshot="",
        snapshot_size=0,
        masked=(TICKET,),
        kind=OrderKind.PROBE,
        probe={"work": work, "upload": results.url, "ticket": TICKET},
        **read,
    )


def of_folder(path: Path) -> dict[str, Any]:
    return {"inputs": {"data": str(path)}}


def of_bucket(server: S3Server, path: str = "2024", **changes: str) -> dict[str, Any]:
    settings = {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID, **changes}
    return {"downloads": {"data": DataDownload(Store(S3, SignIn.SECRET, settings), path, "s3-key", "")}}


def done(hub: FakeHub, order: NodeOrder) -> AttemptFact:
    return hub.wait_done(hub.give(order), 60)


class TestFolder:
    def test_is_read_and_measured(self, hub: FakeHub, agent: Agent, results: Results, data: Path) -> None:
        (data / "deep").mkdir()
        for number in range(3):
            (data / "deep" / f"{number}.bin").write_bytes(b"x" * 1_000_000)
        fact = done(hub, probe_order(results, "test", **of_folder(data)))
        assert not fact.error
        (result,) = results.results
        assert (result["files"], result["bytes"]) == (3, 3_000_000)
        assert 0 < result["seconds"] < 5
        assert not (agent.settings.attempts / "work").exists()

    def test_that_is_missing_fails_with_the_remedy(
        self, hub: FakeHub, agent: Agent, results: Results, data: Path
    ) -> None:
        fact = done(hub, probe_order(results, "test", **of_folder(data / "cats")))
        assert fact.error == (
            f"{data}/cats is not there: mount its file system on that node, or check the path."
        )
        assert not results.results

    def test_is_read_with_the_account_of_runs(
        self, hub: FakeHub, start_agent: Callable[..., Agent], results: Results, data: Path
    ) -> None:
        place = Path(tempfile.mkdtemp(prefix="trainhub-node-", dir="/var/lib"))
        place.chmod(0o711)
        try:
            start_agent(range_settings(hub, place))
            (data / "secret.bin").write_bytes(b"x")
            (data / "secret.bin").chmod(0o600)
            fact = done(hub, probe_order(results, "test", **of_folder(data)))
            assert "has 'secret.bin', which cannot be read by the account of runs (user 19" in fact.error
        finally:
            shutil.rmtree(place)

    def test_is_listed_with_sizes_and_times(
        self, hub: FakeHub, agent: Agent, results: Results, data: Path
    ) -> None:
        (data / "a").mkdir()
        (data / "a" / "b.bin").write_bytes(b"bb")
        (data / "a.txt").write_bytes(b"a")
        os.utime(data / "a.txt", ns=(0, 1_790_000_000_123_456_789))
        (data / "near").symlink_to(data / "a.txt")
        (data / "loop").symlink_to(data)
        (data / "out").symlink_to("/etc/passwd")
        (data / "nothing").symlink_to(data / "missing")
        fact = done(hub, probe_order(results, "list", **of_folder(data)))
        assert not fact.error
        (listed,) = results.lists
        assert [file[0] for file in listed] == ["a/b.bin", "a.txt", "near"]
        assert listed[1] == ["a.txt", 1, "1790000000123456789-1", 1790000000.1234567]
        (result,) = results.results
        assert result["is_file"] is False
        for name in ("loop", "out", "nothing"):
            assert name in result["note"]

    def test_of_one_file_has_that_one(self, hub: FakeHub, agent: Agent, results: Results, data: Path) -> None:
        (data / "a.bin").write_bytes(b"a")
        done(hub, probe_order(results, "list", **of_folder(data / "a.bin")))
        assert results.results[0]["is_file"] is True
        assert [file[0] for file in results.lists[0]] == ["a.bin"]

    @pytest.mark.parametrize("kind", ["pipe", "name"])
    def test_with_what_is_no_file_is_not_listed(
        self, hub: FakeHub, agent: Agent, results: Results, data: Path, kind: str
    ) -> None:
        if kind == "pipe":
            os.mkfifo(data / "pipe")
        else:
            (data / os.fsdecode(b"\xff")).write_bytes(b"x")
        fact = done(hub, probe_order(results, "list", **of_folder(data)))
        assert ("no file but a device" if kind == "pipe" else "is not UTF-8") in fact.error
        assert not results.results

    def test_that_is_empty_is_not_listed(
        self, hub: FakeHub, agent: Agent, results: Results, data: Path
    ) -> None:
        fact = done(hub, probe_order(results, "list", **of_folder(data)))
        assert fact.error.startswith(f"The folder {data} has nothing at its top")


class TestStore:
    @pytest.fixture
    def server(self) -> Iterator[S3Server]:
        server = S3Server()
        server.objects[BUCKET] = {f"2024/{number:03d}.bin": b"x" * 1000 for number in range(20)}
        yield server
        server.close()

    def test_is_read_and_measured(
        self, hub: FakeHub, agent: Agent, results: Results, server: S3Server
    ) -> None:
        hub.secrets[SECRET_KEY] = SECRET
        fact = done(hub, probe_order(results, "test", **of_bucket(server)))
        assert not fact.error
        assert (results.results[0]["files"], results.results[0]["bytes"]) == (20, 20_000)

    @pytest.mark.parametrize(
        "case",
        [
            ("wrong", {}, "The bucket birds refuses these credentials"),
            (SECRET, {"bucket": "cats"}, "There is no bucket cats"),
            (SECRET, {"endpoint": "http://127.0.0.1:1"}, "refuses the connection"),
            (SECRET, {"endpoint": "http://no-such-host.invalid"}, "its name has no address"),
        ],
    )
    def test_that_cannot_be_read_says_why(
        self, hub: FakeHub, agent: Agent, server: S3Server, case: tuple[str, dict[str, str], str]
    ) -> None:
        secret, changes, sentence = case
        hub.secrets[SECRET_KEY] = secret
        results = Results()
        try:
            key = hub.give(probe_order(results, "test", **of_bucket(server, **changes)))
            fact = hub.wait_done(key, 90)
        finally:
            results.close()
        assert sentence in fact.error
        assert SECRET.encode() not in hub.log(key, PREPARATION_LOG)
        assert SECRET not in fact.error

    def test_is_listed(self, hub: FakeHub, agent: Agent, results: Results, server: S3Server) -> None:
        hub.secrets[SECRET_KEY] = SECRET
        fact = done(hub, probe_order(results, "list", **of_bucket(server)))
        assert not fact.error
        assert [file[0] for file in results.lists[0]] == [f"{number:03d}.bin" for number in range(20)]


@pytest.mark.parametrize(
    "change",
    [
        {"probe": {"work": "delete", "upload": "http://hub:80/", "ticket": "thu_1"}},
        {"probe": {"work": "test", "upload": "file:///etc", "ticket": "thu_1"}},
        {"inputs": {}},
        {"snapshot": "a" * 64},
        {"kind": OrderKind.RUN, "snapshot": "a" * 64},
    ],
)
def test_an_order_that_makes_no_sense_is_refused(change: dict[str, Any], results: Results) -> None:
    order = replace(probe_order(results, "test", inputs={"data": "/mnt/a"}), **change)
    with pytest.raises(WireError):
        orders.parse(order.to_json(), order.run, 1)


@pytest.mark.slow
def test_an_agent_that_is_killed_costs_nothing(hub: FakeHub, results: Results, tmp_path: Path) -> None:
    server = S3Server()
    server.objects[BUCKET] = {"2024/a.bin": b"x" * 3_000_000}
    server.rate = 1_000_000
    hub.secrets[SECRET_KEY] = SECRET
    env = environ(hub, tmp_path / "node")
    try:
        with agent_process(env):
            key = hub.give(probe_order(results, "test", **of_bucket(server)))
            hub.wait_log(key, b"Reading the first files", PREPARATION_LOG, 30)
        hub.wait(lambda: results.results, 30)
        with agent_process(env):
            assert not hub.wait_done(key, 60).error
    finally:
        server.close()
    assert results.results[0]["bytes"] == 3_000_000
    assert not [path for path in files_below(tmp_path) if SECRET.encode() in path.read_bytes()]


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
