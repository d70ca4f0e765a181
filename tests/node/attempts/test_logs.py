from __future__ import annotations

import hashlib

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent

FLOOD = """
import hashlib, os
digest, left = hashlib.sha256(), 50_000_000
piece = os.urandom(65521)
while left:
    data = piece[:left]
    os.write(1, data)
    digest.update(data)
    left -= len(data)
open('outputs/' + os.environ['RANK'], 'w').write(digest.hexdigest())
"""


class TestFlood:
    @pytest.mark.slow
    def test_a_hundred_megabytes_from_two_ranks_arrive_whole(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FLOOD, ranks=2))

        hub.wait_done(key, 60)

        for rank in range(2):
            log = hub.log(key, f"70_driver_log_{rank}.txt")
            assert len(log) == 50_000_000
            assert hashlib.sha256(log).hexdigest() == hub.output(key, str(rank)).decode()


class TestLine:
    def test_alone_leaves_without_another(self, hub: FakeHub, agent: Agent) -> None:
        """How soon is measured by bench/log_latency.py."""
        code = (
            "import os, time\nprint('alone', flush=True)\nwhile not os.path.exists('go'):\n    "
            "time.sleep(0.05)\n"
        )
        value = script(hub, code)
        key = hub.give(value)
        hub.wait_log(key, b"alone\n")
        (agent.settings.attempts / f"{value.run}-1" / "work" / "go").touch()
        hub.wait_done(key)


class TestHeartbeat:
    def test_is_told_while_lines_stream(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os, time\nwhile not os.path.exists('go'):\n    print('x', flush=True)\n    "
            "time.sleep(0.001)\n"
        )
        value = script(hub, code)
        key = hub.give(value)
        hub.wait_log(key, b"x\n" * 100)

        beats = hub.heartbeats
        hub.wait(lambda: hub.heartbeats >= beats + 3)
        (agent.settings.attempts / f"{value.run}-1" / "work" / "go").touch()

        hub.wait_done(key)
        assert hub.heartbeat is not None
        assert hub.heartbeat.slots == 8

        def interpreters() -> list[str]:
            assert hub.heartbeat is not None
            return [interpreter.path for interpreter in hub.heartbeat.interpreters]

        # The engine is tried, and each is started once for its version, which the first heartbeats do not
        # wait for.
        hub.wait(interpreters, 60)
        assert agent.settings.python in interpreters()
