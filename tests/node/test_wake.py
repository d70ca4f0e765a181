from __future__ import annotations

import celery

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub.places import broker_of
from trainhub_node.agent import Agent


class TestWakeUp:
    def test_through_the_broker_starts_the_attempt(self, hub: FakeHub, valkey: str, start_agent: object) -> None:
        hub.config = {"broker_url": broker_of(valkey), "queue": "node.here", "key_prefix": "node.here.", "node": "here"}
        assert callable(start_agent)
        agent: Agent = start_agent()
        made = script(hub, "print('woken', flush=True)")
        hub.orders[made.run, 1] = made
        sender = celery.Celery(broker=broker_of(valkey), set_as_current=False)
        sender.conf.broker_transport_options = {"global_keyprefix": "node.here."}

        def woken() -> bool:
            # A wake-up may be lost and may come again: that must do no more than one does.
            sender.send_task("node.wake", kwargs={"run": made.run, "attempt": 1}, queue="node.here", ignore_result=True)
            with hub.changed:
                return hub.changed.wait_for(lambda: (made.run, 1) in hub.facts, 5)

        assert woken() or woken() or woken()
        hub.wait_done((made.run, 1))
        assert hub.log((made.run, 1)) == b"woken\n"
        assert agent.settings.name == "here"
