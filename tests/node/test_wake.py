"""A wake-up through a real broker: agent and sender are processes of their own, as they are at work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.node.builders import environ, script
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process
from trainhub.places import broker_of

SENDER = """
import sys, celery
broker, run = sys.argv[1:]
app = celery.Celery(broker=broker)
app.conf.broker_transport_options = {"global_keyprefix": "node.here."}
app.send_task("node.wake", kwargs={"run": run, "attempt": 1}, queue="node.here", ignore_result=True)
"""


def woken(hub: FakeHub, broker: str, key: Key) -> bool:
    """Send a wake-up, and wait a while for word of the attempt. One may be lost, and several do no more than one."""
    subprocess.run([sys.executable, "-c", SENDER, broker, key[0]], check=True, timeout=30)
    with hub.changed:
        return hub.changed.wait_for(lambda: key in hub.facts, 5)


def test_a_wake_up_through_the_broker_starts_the_attempt(hub: FakeHub, valkey: str, tmp_path: Path) -> None:
    broker = broker_of(valkey)
    hub.config = {"broker_url": broker, "queue": "node.here", "key_prefix": "node.here.", "node": "here"}
    made = script(hub, "print('woken', flush=True)")
    key = made.run, 1
    hub.orders[key] = made
    with agent_process(environ(hub, tmp_path)):
        assert any(woken(hub, broker, key) for _ in range(3))
        hub.wait_done(key)
    assert hub.log(key) == b"woken\n"
