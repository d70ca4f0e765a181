from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace

import pytest

from tests.node.builders import order, process, script
from tests.node.hub import FakeHub
from trainhub_launch.plan import BASE_ENVIRONMENT, Reference
from trainhub_node.agent import Agent
from trainhub_node.containers.engine import NAMES as ENGINES
from trainhub_node.supervisor.variables import BASE

DUMP = (
    "import json, os, sys\nprint(json.dumps([dict(os.environ), sys.argv[1:], os.getcwd(), sys.executable]))\n"
)


class TestEnvironment:
    def test_is_what_the_plan_says_over_the_allow_listed_base_and_nothing_else(
        self, hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AGENT_SECRET", "must not reach training")
        instance = order(
            hub,
            {"train.py": DUMP},
            process(
                0,
                ("python", "train.py"),
                MASTER_PORT="6105",
                GREETING="häß lich",
                KEY=Reference("secret", "api"),
            ),
            values={"secret:api": "s3cret"},
        )
        key = hub.give(instance)

        hub.wait_done(key)

        env, _, cwd, python = json.loads(hub.log(key))
        sites = str(agent.settings.sites)
        assert {name: value for name, value in env.items() if name not in (*BASE, "LC_CTYPE")} == {
            "TRAINHUB_RUN_ID": instance.run,
            "TRAINHUB_ATTEMPT": "1",
            # The log that shows it is masked.
            "TRAINHUB_TOKEN": "*" * len("run-token"),
            "TRAINHUB_STOP_FILE": f"{agent.settings.attempts}/{instance.run}-1/notices/stop.json",
            "TRAINHUB_PREEMPTION_FILE": f"{agent.settings.attempts}/{instance.run}-1/notices/preemption.json",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": sites,
            "RANK": "0",
            "MASTER_PORT": "6105",
            "GREETING": "häß lich",
            "KEY": "s3cret",
        }
        assert set(env) & set(BASE) <= set(os.environ) | {"PATH"}
        assert env["PATH"].startswith(f"{os.path.dirname(agent.settings.python)}:")  # noqa: PTH120
        assert cwd == f"{agent.settings.attempts}/{instance.run}-1/work"
        assert python == agent.settings.python

    def test_a_users_own_python_path_comes_after_ours(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(
            order(hub, {"train.py": DUMP}, process(0, ("python", "train.py"), PYTHONPATH="/their/lib"))
        )

        hub.wait_done(key)

        assert json.loads(hub.log(key))[0]["PYTHONPATH"] == f"{agent.settings.sites}:/their/lib"

    def test_a_virtual_environment_is_named_and_comes_first_on_the_path(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        instance = script(hub, DUMP)
        key = hub.give(replace(instance, environment=replace(instance.environment, python=sys.executable)))

        hub.wait_done(key)

        env, *_ = json.loads(hub.log(key))
        assert env["VIRTUAL_ENV"] == sys.prefix
        assert env["PATH"].split(":")[0] == f"{sys.prefix}/bin"

    def test_a_reference_that_stands_for_nothing_ends_the_attempt_with_its_name(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(
            order(hub, {"train.py": DUMP}, process(0, ("python", "train.py"), KEY=Reference("secret", "api")))
        )

        fact = hub.wait_done(key)

        assert (fact.error_kind, fact.error) == (
            "launch",
            "The plan sets KEY to secret:api, which the hub did not give.",
        )

    def test_the_base_is_the_one_that_the_plan_promises(self) -> None:
        assert BASE == BASE_ENVIRONMENT


class TestArguments:
    HOSTILE = (
        "; rm -rf /",
        "`id`",
        "$(id)",
        "a b\tc\nd",
        "'\"\\",
        "",
        "*",
        "--",
        "-c",
        "é\u20ac\U0001f600",
        "%s",
        "&&",
        ">x",
    )

    @pytest.mark.in_containers
    def test_hostile_ones_arrive_unchanged(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, DUMP, arguments=self.HOSTILE))

        hub.wait_done(key)

        assert json.loads(hub.log(key))[1] == list(self.HOSTILE)

    def test_names_are_expanded_from_the_process_own_environment(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, DUMP, ranks=2, arguments=("--rank=$RANK", "${RANK}of2", "$$RANK")))

        hub.wait_done(key)

        for rank in range(2):
            report = json.loads(hub.log(key, f"70_driver_log_{rank}.txt"))[1]
            assert report == [f"--rank={rank}", f"{rank}of2", "$RANK"]

    def test_an_unknown_name_is_said_in_the_log(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, DUMP, arguments=("$NO_SUCH",)))

        fact = hub.wait_done(key)

        assert hub.log(key) == b"trainhub: $NO_SUCH is not set for this process; write $$ for a dollar sign\n"
        assert fact.members[0].exit_code == 126


class TestStart:
    @pytest.mark.parametrize(
        ("argv", "code", "message"),
        [
            (
                ("no-such-program",),
                127,
                b"trainhub: no-such-program: no such program on this node (looked in ",
            ),
            (("./missing",), 127, b"trainhub: ./missing: no such file on this node\n"),
            (("./plain.txt",), 126, b"trainhub: ./plain.txt: not executable; make it so (chmod +x), "),
        ],
    )
    def test_a_program_that_cannot_be_run_is_one_clear_line(
        self, hub: FakeHub, agent: Agent, argv: tuple[str, ...], code: int, message: bytes
    ) -> None:
        key = hub.give(order(hub, {"plain.txt": "hello"}, process(0, argv)))

        fact = hub.wait_done(key)

        assert fact.members[0].exit_code == code
        assert hub.log(key).startswith(message)
        assert hub.log(key).count(b"\n") == 1

    @pytest.mark.in_containers
    def test_signals_are_as_a_shell_would_leave_them(self, hub: FakeHub, agent: Agent) -> None:
        code = "print(open('/proc/self/status').read())"
        key = hub.give(script(hub, code))

        hub.wait_done(key)

        report = dict(line.split(":\t") for line in hub.log(key).decode().splitlines() if ":\t" in line)
        assert int(report["SigBlk"], 16) == 0
        # 32 and 33 are the C library's own: it lets nobody change them, so they stay as whoever started us
        # left them.
        ignored = int(report["SigIgn"], 16) & ~(1 << 31 | 1 << 32)
        # Python itself ignores these two; nothing else may be ignored.
        assert ignored == (1 << (signal.SIGPIPE - 1)) | (1 << (signal.SIGXFSZ - 1))

    @pytest.mark.in_containers
    def test_each_rank_leads_a_process_group_of_its_own_without_a_terminal_or_input(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        code = "import os, sys\nprint(os.getpgrp() == os.getpid(), sys.stdin.read() == '', oct(os.umask(0)))"
        key = hub.give(script(hub, code))

        hub.wait_done(key)

        assert hub.log(key) == b"True True 0o77\n"


@pytest.mark.in_containers(*ENGINES)
class TestEnd:
    def test_an_exit_code_is_told(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "raise SystemExit(3)"))

        member = hub.wait_done(key).members[0]

        assert (member.state, member.exit_code, member.signal, member.ended_by_us) == (
            "ended",
            3,
            None,
            False,
        )
        assert member.started_at is not None
        assert member.ended_at is not None
        assert member.started_at <= member.ended_at

    def test_a_death_by_signal_is_told_as_such(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "import os\nos.kill(os.getpid(), 11)"))

        member = hub.wait_done(key).members[0]

        assert (member.exit_code, member.signal, member.ended_by_us) == (None, signal.SIGSEGV, False)


class TestLog:
    @pytest.mark.in_containers
    def test_bytes_that_are_not_text_arrive_unchanged(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(
            script(hub, "import os\nos.write(1, bytes(range(256)) * 3)\nos.write(2, b'\\xff\\r\\x1b[31m')")
        )

        hub.wait_done(key)

        assert hub.log(key) == bytes(range(256)) * 3 + b"\xff\r\x1b[31m"

    @pytest.mark.in_containers
    def test_what_a_script_writes_below_logs_streams_too(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os, sys, time\nos.makedirs('logs/tb')\nopen('logs/tb/events', 'w').write('one')\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
        )
        instance = script(hub, code)
        key = hub.give(instance)

        hub.wait_log(key, b"one", "logs/tb/events")
        (agent.settings.attempts / f"{instance.run}-1" / "work" / "go").touch()

        assert hub.wait_done(key).logs["logs/tb/events"] == 3
        assert hub.output(key, "logs/tb/events") == b"one"
