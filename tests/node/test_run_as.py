from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.node.builders import order, process, script, settings
from tests.node.hub import FakeHub
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_node.agent import Agent
from trainhub_node.run_account import Account, can_execute
from trainhub_node.settings import NodeSettings, SettingsError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run ranks as another account")
WHO = (
    "import os\nprint(os.getuid(), os.getgroups(), os.environ['HOME'], "
    "os.environ['USER'])\nopen('outputs/x', 'w').write('y')\n"
)


def nobody_account() -> Account:
    result = pwd.getpwnam("nobody")
    return Account(result.pw_name, result.pw_uid, result.pw_gid, result.pw_dir)


@pytest.fixture
def node(hub: FakeHub) -> Iterator[NodeSettings]:
    """A node whose folder other accounts can reach, as pytest's own folders cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-"))
    folder.chmod(0o711)
    if not can_execute("/usr/bin/python3", nobody_account()):
        pytest.skip("the account nobody has no Python at /usr/bin/python3")
    try:
        yield settings(hub, folder, run_as=nobody_account(), python="/usr/bin/python3")
    finally:
        shutil.rmtree(folder)


class TestRanks:
    def test_run_as_the_account_and_their_outputs_are_saved(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        key = hub.give(script(hub, WHO))

        fact = hub.wait_done(key)

        account = nobody_account()
        assert hub.log(key).decode() == f"{account.uid} [{account.gid}] {account.home} {account.name}\n"
        assert fact.members[0].exit_code == 0
        assert hub.output(key, "x") == b"y"

    def test_cannot_read_the_order_or_change_what_the_agent_believes(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        code = (
            "import os\nfor path, flags in (('../order.json', 0), ('../terms.json', 0), "
            "('../state.json', 2),\n"
            "                    ('../ranks/0.ended.json', os.O_CREAT | os.O_WRONLY), ('../../..', 0)):\n"
            "    try:\n        os.open(path, flags)\n    except PermissionError:\n        "
            "print('refused', path)\n"
        )
        key = hub.give(script(hub, code))

        hub.wait_done(key)

        assert hub.log(key).count(b"refused") == 5

    def test_a_hard_link_to_somebody_elses_file_is_not_taken(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        value = script(
            hub,
            "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n",
        )
        key = hub.give(value)
        hub.wait_log(key, b"up")
        work = node.attempts / f"{value.run}-1" / "work"
        # What a kernel without protected_hardlinks would let the account itself do.
        (work / "outputs" / "mine").hardlink_to(node.attempts / f"{value.run}-1" / "order.json")
        (work / "go").touch()

        fact = hub.wait_done(key)

        assert fact.outputs == ()
        assert fact.warnings == (
            "mine is not among the outputs: it is a link out of the run's folder, or no file.",
        )

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

        assert [member.exit_code for member in fact.members] == [0, 0], fact.error
        for rank in range(2):
            assert hub.log(key, f"70_driver_log_{rank}.txt").split()[0] == str(nobody_account().uid).encode()


def test_a_folder_that_the_account_cannot_enter_is_refused_with_the_remedy(
    hub: FakeHub, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)

    with pytest.raises(SettingsError, match=r"the account nobody \(TRAINHUB_NODE_RUN_AS\) cannot enter"):
        Agent(settings(hub, tmp_path / "node", run_as=nobody_account()))
