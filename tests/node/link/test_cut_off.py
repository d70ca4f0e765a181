"""What an agent says while the hub is away, or does not want it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.node.builders import settings
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent


def test_that_the_hub_is_away_is_said_once_and_how_long_when_it_is_back(
    hub: FakeHub, start_agent: Callable[..., Agent], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    start_agent()
    hub.wait(lambda: hub.reports > 0)
    hub.available = False
    hub.wait(lambda: hub.refused > 3)
    hub.available = True

    eventually(lambda: "The hub answers again, after " in caplog.text)

    assert caplog.text.count("Cannot report to the hub (the hub answered 503)") == 1


def test_an_unwelcome_node_says_so(
    hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start_agent(settings(hub, tmp_path, token="of-yesterday"))

    eventually(lambda: "This node takes no more runs: the hub does not accept this node" in caplog.text)
