from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.node.builders import order, process
from tests.node.hub import FakeHub
from tests.node.processes import remaining_processes
from trainhub_launch.log_names import LAUNCHER_LOG
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import RANK_WRAPPER, RSH_AGENT
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent
from trainhub_node.supervisor import mpi_launcher

DUMP = "import json, os, sys\nprint(json.dumps([dict(os.environ), sys.argv[1:]]))\n"
FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def mpi(hub: FakeHub, code: str, *arguments: str, ranks: int = 4, launcher: Sequence[str] = ()) -> NodeOrder:
    argv = ("python", "train.py", *arguments)
    options = launcher or (
        "mpirun",
        "--host",
        f"127.0.0.1:{ranks}",
        "-np",
        str(ranks),
        "--bind-to",
        "none",
        RANK_WRAPPER,
    )
    return order(
        hub,
        {"train.py": code},
        *(process(rank, argv, of=ranks) for rank in range(ranks)),
        launcher=options,
        grace_s=5,
    )


def log_of(rank: int) -> str:
    return f"70_driver_log_{rank}.txt"


@pytest.mark.mpi
class TestFourProcesses:
    def test_each_has_its_own_log_rank_and_exit_code(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(mpi(hub, DUMP, "--rank=$RANK", "$OMPI_COMM_WORLD_SIZE", "; id"))

        fact = hub.wait_done(key)

        assert [member.exit_code for member in fact.members] == [0, 0, 0, 0]
        for rank in range(4):
            env, argv = json.loads(hub.log(key, log_of(rank)))
            assert env["OMPI_COMM_WORLD_RANK"] == env["RANK"] == str(rank)
            # The token arrives, and the log that shows it is masked.
            assert env["TRAINHUB_TOKEN"] == "*" * len("run-token")
            assert argv == [f"--rank={rank}", "4", "; id"]
        assert (fact.error, fact.stopping, fact.warnings) == ("", "", ())

    def test_one_failed_rank_ends_the_others_and_only_it_is_to_blame(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        code = "import os, time\nif os.environ['RANK'] == '2': raise SystemExit(7)\ntime.sleep(600)\n"
        key = hub.give(mpi(hub, code))

        fact = hub.wait_done(key)

        assert [member.rank for member in fact.members if not member.ended_by_us] == [2]
        assert fact.members[2].exit_code == 7
        assert remaining_processes(key) == set()

    def test_cancel_ends_all_of_them_within_the_grace(self, hub: FakeHub, agent: Agent) -> None:
        ignore = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        key = hub.give(mpi(hub, ignore + FOREVER))
        for rank in range(4):
            hub.wait_log(key, b"up", log_of(rank))

        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")

        fact = hub.wait_done(key, 15)
        assert fact.stopping == "canceled"
        assert [(member.signal, member.ended_by_us) for member in fact.members] == [
            (signal.SIGKILL, True)
        ] * 4
        assert remaining_processes(key) == set()

    def test_they_start_on_a_node_without_a_remote_shell(
        self, hub: FakeHub, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("mpirun", "orted", "prted", "sh", "env", "mount", "unshare"):
            path = shutil.which(name)
            if path:
                (tmp_path / name).symlink_to(path)
        monkeypatch.setenv("PATH", str(tmp_path))
        key = hub.give(mpi(hub, DUMP, ranks=2))

        fact = hub.wait_done(key)

        assert (fact.error, [member.exit_code for member in fact.members]) == ("", [0, 0])

    def test_a_refusal_of_mpirun_is_told_in_its_words(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(mpi(hub, DUMP, launcher=("mpirun", "--no-such-option", RANK_WRAPPER)))

        fact = hub.wait_done(key)

        assert fact.error_kind == "launch"
        assert fact.error.startswith("mpirun exited with code ")
        assert b"no-such-option" in hub.log(key, LAUNCHER_LOG)


def test_without_mpirun_the_package_to_install_is_named(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(mpi(hub, DUMP, launcher=("mpirun-that-nobody-has", RANK_WRAPPER)))

    fact = hub.wait_done(key)

    assert (fact.error_kind, fact.error) == (
        "launch",
        "node here has no Open MPI: there is no mpirun-that-nobody-has on its PATH. Install it there "
        "(Debian: openmpi-bin), or add openmpi to the packages of the environment.",
    )


def test_the_markers_are_the_plans() -> None:
    assert (mpi_launcher.RANK_WRAPPER, mpi_launcher.RSH_AGENT) == (RANK_WRAPPER, RSH_AGENT)
