"""S24: under MPI with `RUN_AS` the records of the ranks lie in a folder that the run controls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.node.runner import hostile_process, needs_root, nobody
from tests.node.builders import order, process, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.processes import remaining_processes
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_launch.report import AttemptFact
from trainhub_node import records
from trainhub_node.agent import Agent
from trainhub_node.attempts.attempt_state import AttemptState
from trainhub_node.rundir import RunDir

pytestmark = [needs_root, pytest.mark.mpi]


@pytest.fixture
def run_ranks(
    hub: FakeHub, start_agent: Callable[..., Agent], open_folder: Path
) -> Iterator[Callable[[str], AttemptFact]]:
    """Runs a script under mpirun, as two ranks of the account nobody, and returns how the attempt stands at
    its end."""

    def run(code: str) -> AttemptFact:
        start_agent(settings(hub, open_folder / "node", run_as=nobody(), python="/usr/bin/python3"))
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        ranks = [process(rank, ("python", "train.py"), of=2) for rank in range(2)]
        key = hub.give(order(hub, {"train.py": code}, *ranks, launcher=launcher, grace_s=2))
        fact = hub.wait_done(key, 60)
        assert remaining_processes(key) == set()
        return fact

    yield run
    end_children(open_folder)


class TestRecords:
    def test_the_end_of_a_rank_is_recorded_though_its_place_is_taken(
        self, run_ranks: Callable[[str], AttemptFact]
    ) -> None:
        """S24. A folder, or a pipe, at the name that the supervising process of root's wrote ended or held
        that process."""
        fact = run_ranks(
            "import os, signal, time\nos.makedirs(f'../ranks/{os.environ[\"RANK\"]}.ended.json/x')\n"
            "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1)\n"
        )

        assert "supervised" not in fact.error
        assert [member.state for member in fact.members] == ["ended", "ended"]

    @pytest.mark.parametrize(
        "trap",
        [
            "os.mkfifo(path)",
            "os.symlink('/etc/passwd', path)",
            "open(path, 'w').write('[' * 60000)",
            "open(path, 'w').write('{\"pid\": 1' + '0' * 30 + ', \"at\": NaN}')",
            'open(path, \'w\').write(\'{"pid": [], "wrapper": {}, "wrapper_identity": 7, "at": "soon"}\')',
        ],
    )
    def test_no_record_of_the_runs_own_making_stops_supervisor_or_node(
        self, run_ranks: Callable[[str], AttemptFact], trap: str
    ) -> None:
        fact = run_ranks(
            "import os, time\n"
            "if os.environ['RANK'] == '0':\n"
            "    for name in ('0.started.json', '1.ended.json', '1.x.started.json', 'daemon-h.json'):\n"
            "        path = f'../ranks/{name}'\n"
            "        if os.path.lexists(path): os.unlink(path)\n"
            f"        {trap}\n"
            '    open(\'../ranks/daemon-x.json\', \'w\').write(\'{"host": "h", "argv": ["\\\\ud800"]}\')\n'
            "    time.sleep(1)\n"
        )

        assert "supervised" not in fact.error
        assert fact.members[0].state == "ended"
        assert all(member.pid is None or member.pid < 2**32 for member in fact.members)


def test_a_pipe_without_an_end_is_not_read(open_folder: Path) -> None:
    """Whoever writes into it all the time filled the memory of the agent."""
    pipe = open_folder / "0.started.json"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    reader = os.open(pipe, os.O_RDWR)

    def pour() -> None:
        with pipe.open("wb") as file:
            file.write(b" " * 65536)

    with hostile_process(nobody(), pour), pytest.raises(records.UnreadableRecord, match="not a regular file"):
        records.read(str(pipe), max_bytes=65536)
    os.close(reader)


class TestUpgrade:
    def test_records_where_children_of_the_version_before_wrote_them_still_count(
        self, open_folder: Path
    ) -> None:
        folder = RunDir(str(open_folder), "a" * 32, 1)
        Path(folder.ranks).mkdir(parents=True)
        records.write(folder.ended(0), {"at": 1.0, "exit_code": 0, "signal": None, "by_us": True})
        records.write(folder.ended(1), {"at": 1.0, "exit_code": 0, "signal": None, "by_us": True})
        records.write(folder.supervisor_ended(1), {"at": 2.0, "exit_code": None, "signal": 9, "by_us": False})

        ends = [AttemptState(folder)._end_record(rank) for rank in range(3)]

        assert [end["signal"] if end else "none" for end in ends] == [None, 9, "none"]
