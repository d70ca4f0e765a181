"""A wake-up through a real broker: agent and sender are processes of their own, as they are at work."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hub import eventually
from tests.node.builders import environ, script
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process
from trainhub.installation import broker_of
from trainhub_node.link import wakeups
from trainhub_node.link.hub_client import TokenRejected

ONE, TWO = "1" * 32, "2" * 32
SENDER = """
import sys, celery
broker, queue, run = sys.argv[1:]
app = celery.Celery(broker=broker)
app.send_task("node.wake", kwargs={"run": run, "attempt": 1}, queue=queue, ignore_result=True)
"""


def road(broker: str, queue: str = "node.here.wake") -> dict[str, Any]:
    return {"broker_url": broker, "queue": queue, "broker_ca": "", "node": "here", "hub_time": time.time()}


def send(broker: str, queue: str, run: str) -> None:
    subprocess.run([sys.executable, "-c", SENDER, broker, queue, run], check=True, timeout=30)


def woken(hub: FakeHub, broker: str, key: Key) -> bool:
    """Send a wake-up, and wait a while for word of the attempt. One may be lost, and several do no more than
    one."""
    send(broker, "node.here.wake", key[0])
    with hub.changed:
        return hub.changed.wait_for(lambda: key in hub.facts, 5)


@contextmanager
def listening(
    config: Callable[[], dict[str, Any]], messages: Callable[[str, int], None]
) -> Iterator[wakeups.WakeupListener]:
    listener = wakeups.WakeupListener(config, messages)
    listener.start()
    try:
        yield listener
    finally:
        listener.close()
        listener.join(20)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is asked again at once."""
    monkeypatch.setattr(wakeups, "CHECK_INTERVAL_S", 0.1)


def test_a_wake_up_through_the_broker_starts_the_attempt(hub: FakeHub, valkey: str, tmp_path: Path) -> None:
    broker = broker_of(valkey)
    hub.config = road(broker)
    value = script(hub, "print('woken', flush=True)")
    key = value.run, 1
    hub.orders[key] = value
    with agent_process(environ(hub, tmp_path)):
        assert any(woken(hub, broker, key) for _ in range(3))
        hub.wait_done(key)
    assert hub.log(key) == b"woken\n"


@pytest.mark.usefixtures("often")
class TestListener:
    def test_follows_the_hub_to_another_queue(self, valkey: str) -> None:
        broker = broker_of(valkey)
        values = [road(broker, "node.here.first")]
        messages: list[str] = []
        with listening(lambda: values[-1], lambda run, _attempt: messages.append(run)):
            send(broker, "node.here.first", ONE)
            eventually(lambda: ONE in messages)
            values.append(road(broker, "node.here.second"))
            send(broker, "node.here.second", TWO)
            eventually(lambda: TWO in messages)

    def test_ends_its_worker_once_the_node_is_unwelcome_and_listens_again_when_it_is_welcome(
        self, valkey: str
    ) -> None:
        broker = broker_of(valkey)
        welcome = threading.Event()
        welcome.set()
        messages: list[str] = []

        def config() -> dict[str, Any]:
            if not welcome.is_set():
                raise TokenRejected("revoked")
            return road(broker, "node.here.third")

        with listening(config, lambda run, _attempt: messages.append(run)):
            send(broker, "node.here.third", ONE)
            eventually(lambda: ONE in messages)
            welcome.clear()
            eventually(lambda: not workers())
            send(broker, "node.here.third", TWO)
            assert messages == [ONE]
            welcome.set()
            eventually(lambda: TWO in messages)

    def test_has_no_worker_where_the_hub_has_no_broker_for_the_node(
        self, valkey: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        requests: list[int] = []

        def config() -> dict[str, Any]:
            requests.append(1)
            return road("")

        with caplog.at_level("INFO"), listening(config, lambda run, _attempt: None):
            eventually(lambda: len(requests) > 2)
            assert not workers()
        assert caplog.text.count("The hub has no broker for this node") == 1

    def test_says_once_that_the_clock_is_off(self, valkey: str, caplog: pytest.LogCaptureFixture) -> None:
        requests: list[int] = []

        def config() -> dict[str, Any]:
            requests.append(1)
            return road("") | {"hub_time": time.time() + 30}

        with listening(config, lambda run, _attempt: None):
            eventually(lambda: len(requests) > 2)
        assert caplog.text.count("this machine's clock is 30 s behind the hub's") == 1


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "celery"]
