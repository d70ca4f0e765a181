from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.node.builders import settings
from tests.node.hub import FakeHub
from tests.node.processes import forget_rules
from trainhub_node import records
from trainhub_node.agent import Agent
from trainhub_node.attempts import crash_cleanup
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub().serving() as value:
        yield value


@pytest.fixture
def start_agent(hub: FakeHub, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Starts an agent in this process; every one is closed at the end, and what it started is ended."""
    with ExitStack() as stack:
        stack.callback(end_children, tmp_path)

        def start(options: NodeSettings | None = None) -> Agent:
            agent = Agent(options or settings(hub, tmp_path / "node"))
            thread = threading.Thread(target=agent.run, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(forget_rules, f"{agent.settings.name} {agent.settings.folder}")
            stack.callback(agent.close)
            return agent

        yield start


@pytest.fixture
def agent(start_agent: Callable[..., Agent]) -> Agent:
    return start_agent()


def end_children(folder: Path) -> None:
    """Children outlive their agent, and those that wait for a final order would wait for ever."""
    for record in folder.rglob("child.json"):
        crash_cleanup.kill_all(RunDir.at(str(record.parent)), records.read(str(record))["pid"])
