"""Secrets on a node: a rank gets the value as a variable, and it is in no file and no report."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from tests.node.builders import environ, order, process
from tests.node.hub import FakeHub
from tests.node.processes import agent_process
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import RANK_WRAPPER, Reference
from trainhub_node import proc
from trainhub_node.agent import Agent

VALUE = "hf_not-for-your-eyes-0815"
STARS = "*" * len(VALUE)
# Proves that the value has arrived without showing it.
PROOF = "import hashlib, os\nprint(hashlib.sha256(os.environ['KEY'].encode()).hexdigest()[:16])\n"
PRINTS = PROOF + "print('key', os.environ['KEY'], flush=True)\n"
WAITS = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n"


def with_secret(hub: FakeHub, code: str, *, ranks: int = 1, mpi: bool = False) -> NodeOrder:
    hub.secrets = {"api": VALUE}
    processes = [
        process(rank, ("python", "train.py"), of=ranks, KEY=Reference("secret", "api"))
        for rank in range(ranks)
    ]
    launcher = (
        "mpirun",
        "--host",
        f"127.0.0.1:{ranks}",
        "-np",
        str(ranks),
        "--bind-to",
        "none",
        RANK_WRAPPER,
    )
    return order(hub, {"train.py": code}, *processes, launcher=launcher if mpi else ())


def digest() -> str:
    return hashlib.sha256(VALUE.encode()).hexdigest()[:16]


def files_with_value(folder: Path) -> list[str]:
    """Every file of the node, whatever it is, that contains the value."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and VALUE.encode() in path.read_bytes()
    ]


class TestValue:
    def test_reaches_the_rank_and_is_masked_in_the_log_here_and_at_the_hub(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(with_secret(hub, PRINTS))

        fact = hub.wait_done(key)

        assert fact.members[0].exit_code == 0
        assert hub.log(key).decode() == f"{digest()}\nkey {STARS}\n"
        assert files_with_value(agent.settings.folder) == []
        assert {request["nonce"] for request in hub.secret_requests} == {hub.nonces[key]}

    @pytest.mark.mpi
    def test_reaches_ranks_that_mpirun_starts_and_is_in_no_file_meanwhile(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(with_secret(hub, PRINTS + WAITS, ranks=2, mpi=True))
        for rank in range(2):
            hub.wait_log(key, b"up\n", f"70_driver_log_{rank}.txt")

        left_meanwhile = files_with_value(agent.settings.folder)
        (agent.settings.attempts / f"{key[0]}-1" / "work" / "go").touch()
        hub.wait_done(key)

        assert left_meanwhile == []
        for rank in range(2):
            assert hub.log(key, f"70_driver_log_{rank}.txt").decode() == f"{digest()}\nkey {STARS}\nup\n"

    def test_a_node_asks_for_none_where_the_plan_names_none(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(order(hub, {"train.py": "print(1)"}, process(0, ("python", "train.py"))))

        hub.wait_done(key)

        assert hub.secret_requests == []


class TestLog:
    def test_a_value_that_is_written_in_two_parts_is_masked(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os, time\nfirst, rest = os.environ['KEY'][:9], os.environ['KEY'][9:]\n"
            "os.write(1, b'key ' + first.encode())\n"
            "while not os.path.exists('go'): time.sleep(0.02)\n"
            "os.write(1, rest.encode() + b' end')\n"
        )
        key = hub.give(with_secret(hub, code))
        hub.wait_log(key, b"key ")
        # Several reports, none of which may have a part of the value.
        reports = hub.reports
        hub.wait(lambda: hub.reports > reports + 3)
        assert hub.log(key) == b"key "

        (agent.settings.attempts / f"{key[0]}-1" / "work" / "go").touch()
        hub.wait_done(key)

        assert hub.log(key).decode() == f"key {STARS} end"

    def test_what_only_begins_like_a_value_is_there_at_the_end(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(with_secret(hub, f"import os\nos.write(1, b'{VALUE[:9]}')\n"))

        hub.wait_done(key)

        assert hub.log(key).decode() == VALUE[:9]

    def test_at_every_place_of_a_large_log(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os\nline = os.environ['KEY'].encode()\n"
            "os.write(1, b''.join(b'x' * (n % 97) + line for n in range(60000)))\n"
        )
        key = hub.give(with_secret(hub, code))

        hub.wait_done(key, 60)

        log = hub.log(key)
        assert VALUE.encode() not in log
        assert log.count(STARS.encode()) == 60000
        assert log == (agent.settings.attempts / f"{key[0]}-1" / "logs" / "70_driver_log.txt").read_bytes()

    def test_in_files_that_the_script_writes_below_logs_as_far_as_they_are_sent(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        code = (
            "import os\nos.makedirs('logs', exist_ok=True)\n"
            "open('logs/own.txt', 'w').write(os.environ['KEY'])\n"
        )
        key = hub.give(with_secret(hub, code))

        hub.wait_done(key)

        assert hub.log(key, "logs/own.txt").decode() == STARS


class TestRestartedAgent:
    def test_asks_again_and_masks_what_is_written_from_then_on(self, hub: FakeHub, tmp_path: Path) -> None:
        env, attempts = environ(hub, tmp_path), tmp_path / "attempts"
        key = hub.give(with_secret(hub, WAITS + PRINTS))
        with agent_process(env):
            hub.wait_log(key, b"up\n")
        (attempts / f"{key[0]}-1" / "work" / "go").touch()
        written = attempts / f"{key[0]}-1" / "logs" / "70_driver_log.txt"
        deadline = time.monotonic() + 15
        while VALUE not in written.read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        requests = len(hub.secret_requests)

        with agent_process(env):
            hub.wait_done(key)

        assert len(hub.secret_requests) == requests + 1
        assert hub.log(key).decode() == f"up\n{digest()}\nkey {STARS}\n"
        assert files_with_value(tmp_path) == []


class TestRefused:
    def test_the_attempt_ends_with_the_hubs_sentence(self, hub: FakeHub, agent: Agent) -> None:
        hub.refuses_secrets = True
        key = hub.give(with_secret(hub, PRINTS))

        fact = hub.wait_done(key)

        assert (fact.error_kind, fact.error) == ("launch", "There is no secret api any more.")


class TestChild:
    def test_other_accounts_see_the_value_in_no_argument(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(with_secret(hub, WAITS))
        hub.wait_log(key, b"up\n")

        lines = [proc.read(str(path)) or b"" for path in Path("/proc").glob("[0-9]*/cmdline")]

        (agent.settings.attempts / f"{key[0]}-1" / "work" / "go").touch()
        hub.wait_done(key)
        assert not [line for line in lines if VALUE.encode() in line]
