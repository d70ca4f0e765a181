"""Every alert about a machine itself: it fires once, clears once, and a webhook hears of both."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.hosts.unhealthy import BEHIND_S, DISK_BYTES, MIB, PORT, UnhealthyHosts
from tests.hub import eventually
from tests.workspaces.notifications.receiver import Receiver

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
LOW_DISK_BYTES = DISK_BYTES // 4
SETTINGS = {
    "ALERT_DISK_FREE_BYTES": str(LOW_DISK_BYTES),
    "ALERT_HOST_MEMORY_PERCENT": "95",
    "ALERT_CLOCK_SECONDS": "5",
    # Seconds instead of a minute.
    "ALERT_PORT_SECONDS": "3",
    "ALERT_LASTING_SECONDS": "3",
    "ALERT_HOLD_SECONDS": "3",
    # A hub that other machines reach sends nothing to its own machine, unless its operator names that.
    "WEBHOOK_HOSTS": "127.0.0.1",
}
SENTENCES = {
    "node_disk": "gpu-a: Only 0.0 GiB are free where it stores runs",
    "node_memory": "The memory of gpu-a is nearly full",
    "node_port": f"Port {PORT} of gpu-a was active and is down",
    # Not exactly: the hub cannot tell a clock that is behind from a report that was long on its way.
    "node_clock": rf"gpu-a: Its clock is {BEHIND_S // 10}\d s behind the hub's",
}
"""Kind -> pattern of what people read."""
SLOWLY_S = 120
"""Alerts are checked every ten seconds, on a machine that other tests keep busy."""


class WatchedMachine:
    """A machine, and a webhook that hears of its alerts. Those of the hub's own node, on the machine of the
    tests, do not count."""

    def __init__(self, hosts: UnhealthyHosts, receiver: Receiver) -> None:
        self.hosts = hosts
        self.host = hosts.hosts[0]
        self.receiver = receiver

    def firing(self) -> set[str]:
        page = self.hosts.runs.get(f"/alerts/?state=firing&node={self.host.name}")
        return {alert["kind"] for alert in page["results"]}

    def sentences(self, event: str) -> dict[str, str]:
        """Kind -> sentence of the messages that came."""
        return {alert["kind"]: alert["sentence"] for alert in self._alerts(event)}

    def count(self, event: str) -> Counter[str]:
        """How many messages came of each kind."""
        return Counter(alert["kind"] for alert in self._alerts(event))

    def _alerts(self, event: str) -> list[dict[str, str]]:
        messages = self.receiver.alerts(event)
        return [message["alert"] for message in messages if message["node"]["name"] == self.host.name]


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedMachine]:
    receiver = Receiver()
    hosts = UnhealthyHosts(tmp_path_factory.mktemp("unhealthy"), sys.executable, 1, SETTINGS)
    try:
        hosts.start_hub()
        # Before the machine reports: its clock is off from the beginning.
        receiver.subscribe_to_alerts(hosts.runs.client)
        hosts.start_hosts()
        yield WatchedMachine(hosts, receiver)
    finally:
        hosts.stop()
        receiver.stop()


def test_each_trouble_of_a_machine_is_told_once_and_its_end_once(machine: WatchedMachine) -> None:
    host = machine.host
    host.fill_disk(free_bytes=LOW_DISK_BYTES - 8 * MIB)
    host.set_memory(used_percent=97)
    # This check of the hub has also learned that the port is in use.
    eventually(lambda: "node_disk" in machine.firing(), SLOWLY_S, "the disk is nearly full")
    host.set_port(active=False)
    eventually(lambda: machine.firing() == set(SENTENCES), SLOWLY_S, "all of them fire")

    host.empty_disk()
    host.set_memory(used_percent=40)
    host.set_port(active=True)
    host.set_clock(behind_s=0)
    eventually(lambda: not machine.firing(), SLOWLY_S, "all clear")
    once = Counter(dict.fromkeys(SENTENCES, 1))
    eventually(lambda: machine.count("alert.cleared") == once, 30, "the webhook hears of both ends")
    assert machine.count("alert.fired") == once
    for kind, sentence in machine.sentences("alert.fired").items():
        assert re.search(SENTENCES[kind], sentence)
