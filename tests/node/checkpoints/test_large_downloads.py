"""A large checkpoint that an attempt goes on from is read from the hub by the library for stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_launch.data.checkpoint_order import CheckpointOrder, OrderedFile
from trainhub_node.agent import Agent
from trainhub_node.checkpoints import restore
from trainhub_node.link.hub_client import HubClient, HubError


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "LARGE_BYTES", 1)


def begin_with(hub: FakeHub, *contents: bytes) -> tuple[str, int]:
    """Gives the node a run that prints the files of the checkpoint it begins with. Returns its key."""
    files = tuple(
        OrderedFile(f"step/{number}.pt", len(content), hub.store(content))
        for number, content in enumerate(contents)
    )
    code = "import pathlib\nprint([p.read_bytes() for p in sorted(pathlib.Path('saved/step').iterdir())])"
    return hub.give(replace(script(hub, code), checkpoint=CheckpointOrder("saved", files)))


def test_the_agent_itself_reads_none_of_it(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise HubError("the agent asks for a file of a checkpoint")

    monkeypatch.setattr(HubClient, "download_checkpoint_file", refuse)
    key = begin_with(hub, b"weights", b"optimiser", b"weights")
    assert not hub.wait_done(key).error
    assert hub.log(key) == f"{[b'weights', b'optimiser', b'weights']}\n".encode()


def test_without_the_library_the_agent_reads_it(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainhub_node.stores.store_files.AGENT_WRAPPER", ["/bin/false"])
    key = begin_with(hub, b"weights")
    assert not hub.wait_done(key).error
    assert hub.log(key) == f"{[b'weights']}\n".encode()


def test_what_the_hub_has_no_longer_fails_the_attempt(hub: FakeHub, agent: Agent) -> None:
    file = OrderedFile("step.pt", 7, "0" * 64)
    done = hub.wait_done(hub.give(replace(script(hub, ""), checkpoint=CheckpointOrder("saved", (file,)))))
    assert "There is no such" in done.error
