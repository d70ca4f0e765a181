"""Shares of a real NFS server: mounted for runs, used by several, taken over and unmounted, and what is said
when that cannot be."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import environ, order, process, settings
from tests.node.data.shares.nfs_server import ABSENT, CLIENT, SERVER, NfsServer
from tests.node.hub import FakeHub, Key
from tests.node.probing.results import Results
from tests.node.probing.test_probes import probe_order
from tests.node.processes import agent_process
from tests.node.test_range import range_settings
from trainhub_launch.data.shares import InputMount, NfsShare
from trainhub_launch.machine import MOUNTS
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import Reference
from trainhub_launch.states import ErrorKind
from trainhub_node.agent import Agent
from trainhub_node.data.shares import mount_table, share_keeper
from trainhub_node.data.shares.allowed_servers import NONE
from trainhub_node.data.shares.share_folder import ShareFolder, try_lock

pytestmark = pytest.mark.skipif(
    not os.environ.get("TRAINHUB_TEST_VIRTUAL_MACHINE") or not shutil.which("rpc.nfsd"),
    reason="needs an NFS server of the kernel, so a virtual machine (make test-nfs)",
)
SHARE = NfsShare(SERVER, "/srv/images")
READ = """
import os, pathlib, time
folder = pathlib.Path(os.environ['TRAINHUB_INPUT_BIRDS'])
print((folder / 'labels.txt').read_text())
try:
    (folder / 'new.txt').write_text('x')
except OSError as error:
    print('not written:', error.strerror)
mounts = [line.split() for line in open('/proc/self/mountinfo')]
# The last one covers the others.
options = [mount for mount in mounts if str(folder).startswith(mount[4] + '/')][-1]
print(sorted({'ro', 'rw', 'nosuid', 'nodev', 'noexec'} & set(options[5].split(','))))
"""
WAIT = (
    READ
    + """
print('reads', flush=True)
while not os.path.exists('/var/lib/nfs-test-go'):
    time.sleep(0.1)
print((folder / 'labels.txt').read_text())
"""
)
GO = Path("/var/lib/nfs-test-go")


@pytest.fixture(scope="module")
def served() -> Iterator[NfsServer]:
    server = NfsServer()
    yield server
    server.close()


@pytest.fixture
def server(served: NfsServer) -> Iterator[NfsServer]:
    shutil.rmtree(served.images / "birds", ignore_errors=True)
    folder = served.images / "birds"
    folder.mkdir()
    (folder / "labels.txt").write_text("sparrow")
    # The account that reads is nobody there, also root. An agent in this process gives less by itself.
    folder.chmod(0o755)
    (folder / "labels.txt").chmod(0o644)
    GO.unlink(missing_ok=True)
    yield served
    served.heal()


@pytest.fixture
def place() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-", dir="/var/lib"))
    folder.chmod(0o711)
    return folder


def reading(hub: FakeHub, share: NfsShare = SHARE, path: str = "birds", script: str = READ) -> NodeOrder:
    rank = process(0, ("python", "train.py"), TRAINHUB_INPUT_BIRDS=Reference("launch", "input_birds"))
    return replace(order(hub, {"train.py": script}, rank), mounts={"birds": InputMount(share, path)})


def log_of(hub: FakeHub, key: Key) -> list[str]:
    fact = hub.wait_done(key, 60)
    assert not fact.error
    return hub.log(key).decode().splitlines()


def is_unused(place: Path) -> bool:
    lock = ShareFolder(f"{place}/shares", SHARE.key).open_lock()
    try:
        return try_lock(lock, alone=True)
    finally:
        os.close(lock)


def refusal(hub: FakeHub, share: NfsShare, path: str = "birds") -> str:
    fact = hub.wait_done(hub.give(reading(hub, share, path)), 60)
    assert fact.error_kind == ErrorKind.DATA
    return fact.error


def mount_of(agent: Agent, share: NfsShare = SHARE) -> str:
    return ShareFolder(share_keeper.shares_folder(agent.settings), share.key).mount


class TestRuns:
    def test_read_in_namespaces_and_cannot_write(
        self, hub: FakeHub, start_agent: Callable[..., Agent], place: Path, server: NfsServer
    ) -> None:
        agent = start_agent(range_settings(hub, place))
        expected = ["sparrow", "not written: Read-only file system", "['nodev', 'noexec', 'nosuid', 'ro']"]
        assert log_of(hub, hub.give(reading(hub))) == expected
        hub.wait(lambda: hub.heartbeat is not None and MOUNTS in hub.heartbeat.capabilities)
        assert mount_table.find_mount(mount_of(agent)) == ("nfs4", str(SHARE))

    @pytest.mark.parametrize("version", ["3", "4.1"])
    def test_read_without_namespaces(
        self, hub: FakeHub, agent: Agent, server: NfsServer, version: str
    ) -> None:
        share = replace(SHARE, options=f"vers={version}")
        assert log_of(hub, hub.give(reading(hub, share)))[:2] == [
            "sparrow",
            "not written: Read-only file system",
        ]

    def test_write_where_the_datastore_says_so(
        self, hub: FakeHub, start_agent: Callable[..., Agent], place: Path, server: NfsServer
    ) -> None:
        start_agent(range_settings(hub, place))
        (server.images / "birds").chmod(0o777)
        lines = log_of(hub, hub.give(reading(hub, replace(SHARE, read_only=False))))
        assert lines == ["sparrow", "['nodev', 'noexec', 'nosuid', 'rw']"]
        assert (server.images / "birds" / "new.txt").read_text() == "x"

    def test_that_need_the_same_share_have_one_mount(
        self, hub: FakeHub, agent: Agent, server: NfsServer
    ) -> None:
        keys = [hub.give(reading(hub, script=WAIT)) for _ in range(3)]
        for key in keys:
            hub.wait_log(key, b"reads", timeout_s=60)
        table = Path("/proc/self/mountinfo").read_text()
        assert table.count(mount_of(agent)) == 1
        GO.touch()
        for key in keys:
            assert log_of(hub, key)[-1] == "sparrow"

    def test_do_not_follow_a_link_out_of_the_share(
        self, hub: FakeHub, agent: Agent, server: NfsServer
    ) -> None:
        (server.images / "birds" / "out").symlink_to("/etc")
        sentence = refusal(hub, SHARE, "birds/out")
        assert sentence == (
            f"Input birds: {SHARE}/birds/out on node here is a link that leads out of its share."
        )

    def test_are_told_what_is_missing_in_the_share(
        self, hub: FakeHub, agent: Agent, server: NfsServer
    ) -> None:
        assert f"Input birds: {SHARE}/cats on node here is not there" in refusal(hub, SHARE, "cats")


class TestProbes:
    def test_read_and_list(self, hub: FakeHub, agent: Agent, server: NfsServer) -> None:
        results = Results()
        mounts = {"data": InputMount(SHARE, "birds")}
        for work in ("test", "list"):
            fact = hub.wait_done(hub.give(probe_order(results, work, mounts=mounts)), 60)
            assert not fact.error
        assert results.results[0]["files"] == 1
        assert [entry[0] for entry in results.lists[0]] == ["labels.txt"]
        results.close()


class TestRefusals:
    @pytest.mark.parametrize(
        ("share", "words"),
        [
            (
                NfsShare(SERVER, "/srv/private"),
                "has no /srv/private for this node: check the path, and export it",
            ),
            (
                NfsShare(SERVER, "/srv/nothing"),
                "has no /srv/nothing for this node: check the path, and export it",
            ),
            (NfsShare(SERVER, "/srv/images/birds/labels.txt"), "is no folder: name the folder above it"),
            (NfsShare(ABSENT, "/srv/images"), f"there is no route to {ABSENT}"),
            (NfsShare(CLIENT, "/srv/images"), f"no NFS server runs on {CLIENT}: start it there"),
            (NfsShare("nothing.example.org", "/srv/images"), "has no address there"),
        ],
    )
    def test_name_the_cause_and_the_remedy(
        self, hub: FakeHub, agent: Agent, server: NfsServer, share: NfsShare, words: str
    ) -> None:
        sentence = refusal(hub, share)
        assert sentence.startswith(f"Input birds: node here cannot mount {share}: ")
        assert words in sentence

    def test_say_that_the_server_does_not_answer(self, hub: FakeHub, agent: Agent, server: NfsServer) -> None:
        server.cut()
        sentence = refusal(hub, replace(SHARE, options="rsize=4096"))
        assert f"{SERVER} did not answer within 30 s" in sentence
        reports = hub.reports
        hub.wait(lambda: hub.reports > reports + 2)


class TestAllowedServers:
    def test_may_be_named_with_an_export(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, server: NfsServer
    ) -> None:
        start_agent(settings(hub, tmp_path / "node", nfs_servers=(str(SHARE),)))
        assert log_of(hub, hub.give(reading(hub)))[0] == "sparrow"
        below = replace(SHARE, export="/srv/images/birds")
        assert refusal(hub, below, "").startswith(f"Input birds: node here does not mount {below}: ")

    def test_may_be_none(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, server: NfsServer
    ) -> None:
        start_agent(settings(hub, tmp_path / "node", nfs_servers=(NONE,)))
        hub.wait(lambda: hub.heartbeat is not None)
        assert hub.heartbeat is not None
        assert MOUNTS not in hub.heartbeat.capabilities
        assert "does not mount" in refusal(hub, SHARE)


class TestMounts:
    def test_outlive_a_killed_agent_and_are_unmounted_by_the_next(
        self, hub: FakeHub, place: Path, server: NfsServer
    ) -> None:
        variables = environ(hub, place)
        mount = ShareFolder(f"{place}/shares", SHARE.key).mount
        with agent_process(variables):
            key = hub.give(reading(hub, script=WAIT))
            hub.wait_log(key, b"reads", timeout_s=60)
        assert mount_table.is_mount_point(mount)
        with agent_process(variables) as second:
            other = hub.give(reading(hub))
            assert log_of(hub, other)[0] == "sparrow"
            GO.touch()
            assert log_of(hub, key)[-1] == "sparrow"
            assert mount_table.is_mount_point(mount), "it is kept for a while"
            # A child says that it is done a moment before it ends.
            hub.wait(lambda: is_unused(place), 60)
            second.terminate()
            second.wait(60)
        assert not mount_table.is_mount_point(mount)

    def test_stay_while_a_run_goes_on_without_its_agent(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, server: NfsServer
    ) -> None:
        agent = start_agent()
        key = hub.give(reading(hub, script=WAIT))
        hub.wait_log(key, b"reads", timeout_s=60)
        agent.close()
        assert mount_table.is_mount_point(mount_of(agent))
        agent = start_agent(settings(hub, tmp_path / "node"))
        GO.touch()
        assert log_of(hub, key)[-1] == "sparrow"

    def test_of_a_server_that_is_gone_hold_nobody(
        self, hub: FakeHub, start_agent: Callable[..., Agent], server: NfsServer
    ) -> None:
        agent = start_agent()
        assert log_of(hub, hub.give(reading(hub)))[0] == "sparrow"
        server.cut()
        sentence = refusal(hub, SHARE)
        assert f"{SERVER} did not answer within 30 s" in sentence
        assert not mount_table.is_mount_point(mount_of(agent)), "what did not answer was unmounted"
        server.heal()
        assert log_of(hub, hub.give(reading(hub)))[0] == "sparrow"
        server.cut()
        agent.close()
        assert not mount_table.is_mount_point(mount_of(agent))
