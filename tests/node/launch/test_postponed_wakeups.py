"""A wake-up while another step of the attempt runs."""

from __future__ import annotations

import threading

import pytest

from tests.node.builders import script
from tests.node.gangs import part
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent
from trainhub_node.launch.claims import Claims
from trainhub_node.rundir import RunDir


def test_a_wake_up_while_ports_are_reserved_is_not_lost(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserving, is_woken = threading.Event(), threading.Event()
    reserve_ports = Claims.reserve_ports

    def reserve_slowly(claims: Claims, folder: RunDir) -> None:
        reserving.set()
        assert is_woken.wait(30)
        reserve_ports(claims, folder)

    monkeypatch.setattr(Claims, "reserve_ports", reserve_slowly)
    key = hub.give(part(script(hub, "print('started')")))
    assert reserving.wait(30)

    agent.resume(*key)
    is_woken.set()

    hub.wait(lambda: len(hub.claims) >= 2)
    assert hub.claims[0]["nonce"] == hub.claims[1]["nonce"]
