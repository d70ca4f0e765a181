"""What a node says about shares that it cannot mount, and when it unmounts others. The real thing is in
test_nfs.py."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.node.builders import environ, order, process, settings
from tests.node.hub import FakeHub
from tests.node.processes import agent_process
from trainhub_launch.data.shares import InputMount, NfsShare
from trainhub_launch.errors import WireError
from trainhub_launch.machine import MOUNTS
from trainhub_launch.order import NodeOrder
from trainhub_launch.states import ErrorKind
from trainhub_node.agent import Agent
from trainhub_node.data.shares import mount_table, nfs_client, share_keeper
from trainhub_node.data.shares.mount_errors import explain_failure
from trainhub_node.data.shares.share_folder import ShareFolder, release, try_lock
from trainhub_node.intake import orders
from trainhub_node.settings import NodeSettings

SHARE = NfsShare("files.example.org", "/srv/images")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


def mounting_order(hub: FakeHub, share: NfsShare = SHARE, path: str = "") -> NodeOrder:
    return replace(
        order(hub, {"train.py": ""}, process(0, ("python", "train.py"))),
        mounts={"birds": InputMount(share, path)},
    )


@contextmanager
def mounted(node: Path, key: str) -> Iterator[ShareFolder]:
    """What the node has mounted as the share of that key."""
    folder = ShareFolder(str(node / "shares"), key)
    folder.make()
    os.close(folder.open_lock())
    with mounted_again(folder):
        yield folder


@contextmanager
def mounted_again(folder: ShareFolder) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder.mount], check=True)
    yield
    subprocess.run(["umount", "-lq", folder.mount], check=False)


@contextmanager
def in_use(folder: ShareFolder) -> Iterator[None]:
    lock = folder.open_lock()
    assert try_lock(lock, alone=False)
    yield
    os.close(lock)


class TestOptions:
    def test_of_readers_give_up_and_those_of_writers_do_not(self) -> None:
        assert SHARE.mount_options == "ro,nosuid,nodev,noexec,soft,timeo=600,retrans=2,nolock,retry=0"
        writing = replace(SHARE, read_only=False, options="vers=4.2")
        assert writing.mount_options == "rw,nosuid,nodev,noexec,hard,timeo=600,retrans=2,retry=0,vers=4.2"

    def test_another_mount_has_another_place(self) -> None:
        others = [
            replace(SHARE, options="vers=3"),
            replace(SHARE, read_only=False),
            replace(SHARE, export="/srv"),
        ]
        assert len({share.key for share in (SHARE, *others)}) == 4


class TestIntake:
    def test_takes_what_the_hub_sends(self, hub: FakeHub) -> None:
        sent = mounting_order(hub, replace(SHARE, options="vers=3", read_only=False), "birds/2024")
        assert orders.parse(sent.to_json(), sent.run, 1) == sent

    @pytest.mark.parametrize(
        ("share", "path"),
        [
            ({"host": "-o"}, ""),
            ({"host": "files,rw"}, ""),
            ({"host": 5}, ""),
            ({"host": "FILES"}, ""),
            ({"export": "/srv/../etc"}, ""),
            ({"export": "/a b"}, ""),
            ({"options": "suid"}, ""),
            ({"options": "vers=4,nconnect=2"}, ""),
            ({"read_only": "no"}, ""),
            ({}, "../etc"),
            ({}, "a\0b"),
        ],
    )
    def test_refuses_anything_else(self, hub: FakeHub, share: dict[str, Any], path: str) -> None:
        sent = mounting_order(hub, replace(SHARE, **share), path)
        with pytest.raises(WireError, match="mounts"):
            orders.parse(sent.to_json(), sent.run, 1)


class TestObstacles:
    @pytest.mark.skipif(not nfs_client.find_obstacle(), reason="this machine mounts NFS")
    def test_end_the_run_with_the_remedy(self, hub: FakeHub, agent: Agent) -> None:
        fact = hub.wait_done(hub.give(mounting_order(hub)))
        assert fact.error_kind == ErrorKind.DATA
        assert fact.error == f"Input birds: node here cannot mount NFS: {nfs_client.find_obstacle()}."
        hub.wait(lambda: hub.heartbeat is not None)
        assert hub.heartbeat is not None
        assert MOUNTS not in hub.heartbeat.capabilities

    def test_are_named_one_after_the_other(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert nfs_client.find_obstacle() == "its agent is not root: run it as root"
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        status = tmp_path / "status"
        status.write_text("CapEff:\t00000000a80425fb\n")
        monkeypatch.setattr(nfs_client, "STATUS", str(status))
        assert "without the right to mount: give that CAP_SYS_ADMIN" in nfs_client.find_obstacle()
        status.write_text("CapEff:\t000001ffffffffff\n")
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(nfs_client, "DEFAULT_PATH", str(tmp_path))
        assert "install nfs-common (Debian, Ubuntu), nfs-utils (RHEL" in nfs_client.find_obstacle()
        (tmp_path / "mount.nfs").touch(0o755)
        systems = tmp_path / "filesystems"
        systems.write_text("nodev\tproc\n\text4\n")
        monkeypatch.setattr(nfs_client, "FILE_SYSTEMS", str(systems))
        monkeypatch.setattr(nfs_client, "MODULE_LISTS", ())
        assert "has no NFS client: load its module nfs" in nfs_client.find_obstacle()
        systems.write_text("nodev\tproc\nnodev\tnfs4\n")
        assert nfs_client.find_obstacle() == ""

    @needs_root
    @pytest.mark.skipif(
        not nfs_client.mount_program() or "has no NFS client" not in nfs_client.find_obstacle(),
        reason="this needs mount.nfs, and a kernel without NFS",
    )
    def test_the_words_of_mount_are_understood(self, tmp_path: Path) -> None:
        options = ("-o", SHARE.mount_options)
        argv = [nfs_client.mount_program(), "127.0.0.1:/srv/images", str(tmp_path), *options]
        done = subprocess.run(argv, capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
        assert explain_failure(SHARE, done.stderr.splitlines()) == nfs_client.LOAD

    def test_what_is_not_known_is_said_as_it_is(self) -> None:
        assert explain_failure(SHARE, ["mount.nfs: a", "mount.nfs: b"]) == "mount.nfs: b"
        assert explain_failure(SHARE, []) == "mount.nfs failed without a word"


@needs_root
class TestKeeper:
    """A file system in memory stands for a share: unmounting does not differ."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[ShareFolder]:
        with mounted(tmp_path, SHARE.key) as folder:
            yield folder

    @pytest.fixture
    def node(self, hub: FakeHub, tmp_path: Path) -> NodeSettings:
        return settings(hub, tmp_path)

    def test_unmounts_what_nobody_has_used_for_a_while(self, folder: ShareFolder, node: NodeSettings) -> None:
        share_keeper.unmount_idle(node)
        assert mount_table.is_mount_point(folder.mount)
        os.utime(folder.lock, (0, 0))
        share_keeper.unmount_idle(node)
        assert not mount_table.is_mount_point(folder.mount)

    def test_leaves_what_a_run_uses(
        self, folder: ShareFolder, node: NodeSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        os.utime(folder.lock, (0, 0))
        with in_use(folder):
            share_keeper.unmount_idle(node)
            share_keeper.unmount_unused(node)
            assert caplog.messages == [f"tmpfs stays mounted at {folder.mount}: {share_keeper.IN_USE}"]
            assert mount_table.is_mount_point(folder.mount)
        share_keeper.unmount_idle(node)
        assert mount_table.is_mount_point(folder.mount), "it was used a moment ago"
        share_keeper.unmount_unused(node)
        assert not mount_table.is_mount_point(folder.mount)

    def test_waits_at_the_end_for_a_child_that_ends(self, folder: ShareFolder, node: NodeSettings) -> None:
        with ExitStack() as child:
            child.enter_context(in_use(folder))
            ending = threading.Timer(0.3, child.close)
            ending.start()
            share_keeper.unmount_unused(node)
            ending.join()
        assert not mount_table.is_mount_point(folder.mount)

    def test_a_process_that_is_being_started_keeps_no_lock(self, folder: ShareFolder) -> None:
        lock = folder.open_lock()
        assert try_lock(lock, alone=True)
        copy = os.dup(lock)
        release(lock)
        other = folder.open_lock()
        assert try_lock(other, alone=True)
        release(other)
        os.close(copy)

    def test_says_why_something_stays(
        self, folder: ShareFolder, node: NodeSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mounted_again(folder):
            share_keeper.unmount_unused(node)
        assert caplog.messages == [
            f"tmpfs stays mounted at {folder.mount}: umount has ended with code 0, and something is there"
        ]


@needs_root
class TestEndOfAnAgent:
    def test_leaves_mounted_only_what_is_used(self, hub: FakeHub, tmp_path: Path) -> None:
        """With many, so that they are not unmounted before the process could have ended."""
        with ExitStack() as stack:
            shares = [stack.enter_context(mounted(tmp_path, f"{number:016}")) for number in range(12)]
            stack.enter_context(in_use(shares[0]))
            reports = hub.reports
            with agent_process(environ(hub, tmp_path)) as agent:
                hub.wait(lambda: hub.reports > reports)
                agent.terminate()
                assert agent.wait(20) == 0
            left = [share for share in shares if mount_table.is_mount_point(share.mount)]
        assert left == shares[:1]
