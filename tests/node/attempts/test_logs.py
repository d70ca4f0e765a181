from __future__ import annotations

import hashlib
import time

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
    def test_alone_leaves_at_once(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import time\nfor n in range(40):\n    print(n, time.time(), flush=True)\n    time.sleep(0.02)\n"
        )
        arrivals: list[float] = []
        key = hub.give(script(hub, code))
        for n in range(40):
            hub.wait_log(key, f"\n{n} ".encode() if n else b"0 ")
            arrivals.append(time.time())

        hub.wait_done(key)

        written = [float(line.split()[1]) for line in hub.log(key).decode().splitlines()]
        late = sorted(there - here for there, here in zip(arrivals, written, strict=True))
        # The bench holds the real figure; here only that no poll of a second or a tenth stands in the way.
        assert late[len(late) // 2] < 0.08


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
