"""A root agent that gives each attempt an account and namespaces of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import order, process, script, settings
from tests.node.hub import FakeHub
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_node.agent import Agent
from trainhub_node.isolation import uid_range
from trainhub_node.run_account import Account
from trainhub_node.settings import NodeSettings

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run ranks as another account")
FIRST = uid_range.DEFAULT.start
WHO = """
import getpass, os, pathlib, pwd, subprocess
print(os.getuid(), os.getgid(), os.getgroups(), pwd.getpwuid(os.getuid()).pw_name, getpass.getuser())
print(subprocess.run(['whoami'], capture_output=True, text=True).stdout.strip(), pathlib.Path.home())
print(sorted(os.listdir('/tmp')), sorted(name for name in os.listdir('/proc') if name.isdecimal())[:1])
open('outputs/x', 'w').write('y')
"""


def range_settings(hub: FakeHub, folder: Path) -> NodeSettings:
    account = Account("range", FIRST, FIRST, "/")
    return settings(hub, folder, run_as=account, uids=uid_range.DEFAULT, python="/usr/bin/python3")


@pytest.fixture
def node(hub: FakeHub) -> Iterator[NodeSettings]:
    """A node whose folder other accounts can reach, as pytest's own folders cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-", dir="/var/lib"))
    folder.chmod(0o711)
    try:
        yield range_settings(hub, folder)
    finally:
        shutil.rmtree(folder)


class TestRanks:
    def test_have_an_account_of_their_own_with_a_name_and_their_outputs_are_saved(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        keys = [hub.give(script(hub, WHO)) for _ in range(2)]

        facts = [hub.wait_done(key) for key in keys]

        uids = set()
        for key, fact in zip(keys, facts, strict=True):
            assert fact.members[0].exit_code == 0, hub.log(key)
            uid, gid, groups, name, user = hub.log(key).decode().splitlines()[0].split()
            assert (gid, groups, name, user) == (uid, "[]", f"run{uid}", f"run{uid}")
            uids.add(int(uid))
            home = f"{node.attempts}/{key[0]}-1/home"
            assert hub.log(key).decode().splitlines()[1:] == [f"run{uid} {home}", "[] ['1']"]
            assert hub.output(key, "x") == b"y"
        assert len(uids) == 2
        assert uids <= set(uid_range.DEFAULT[1:])

    @pytest.mark.mpi
    def test_under_mpirun_too(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        argv = ("python", "train.py")
        key = hub.give(
            order(hub, {"train.py": WHO}, process(0, argv, of=2), process(1, argv, of=2), launcher=launcher)
        )

        fact = hub.wait_done(key)

        assert [member.exit_code for member in fact.members] == [0, 0], (fact, hub.logs)
        uids = {hub.log(key, f"70_driver_log_{rank}.txt").split()[0] for rank in range(2)}
        assert len(uids) == 1
        assert int(uids.pop()) in uid_range.DEFAULT[1:]


def test_without_namespaces_each_run_still_has_an_account_and_a_home(
    hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
) -> None:
    agent = start_agent(node)
    agent._starter._claims._settings = replace(agent.settings, has_namespaces=False)
    code = "import os\nprint(os.getuid(), os.path.isdir(os.path.expanduser('~')), os.environ['LOGNAME'])\n"
    key = hub.give(script(hub, code))
    assert hub.wait_done(key).members[0].exit_code == 0
    uid, has_home, name = hub.log(key).decode().split()
    assert (int(uid) in uid_range.DEFAULT[1:], has_home, name) == (True, "True", f"run{uid}")
