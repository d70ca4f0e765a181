"""Nodes that listen for wake-ups with the agent's own Celery app, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clusters import wakeups
from clusters.brokers import login_for_node
from clusters.models import Node
from tests.hub import PROJECT, eventually

READY = "0" * 32
LISTENER = """
import json, sys
from trainhub_node.broker.celery_worker import CeleryWorker
from trainhub_node.broker.broker_link import from_config
link = from_config(json.loads(sys.argv[1]))
worker = CeleryWorker(link, lambda run, attempt: print("woken", run, attempt, flush=True), lambda: None)
worker.run()
"""


class Ear:
    """`heard`: the runs that the node was woken for."""

    def __init__(self, node: Node, file: Path) -> None:
        self.node = node
        self._file = file

    @property
    def said(self) -> str:
        return self._file.read_text()

    @property
    def heard(self) -> list[str]:
        runs = [line.split()[1] for line in self.said.splitlines() if line.startswith("woken ")]
        return [run for run in runs if run != READY]

    def has_heard(self, runs: list[str]) -> bool:
        """Whether it was woken for exactly these runs, in this order."""
        return self.heard == runs

    def wake(self) -> bool:
        """Send a wake-up, and say whether one has arrived by now."""
        return wakeups.wake(self.node, READY, 1) and f"woken {READY}" in self.said


def run_id(node: Node, number: int) -> str:
    """A run id that tells for whom it was."""
    return f"{node.name.encode().hex()}{number:02d}".rjust(32, "0")


@contextmanager
def listening(nodes: Sequence[Node], folder: Path) -> Iterator[list[Ear]]:
    """All of them, each by what the hub tells it; they are ready when the block begins."""
    with ExitStack() as stack:
        ears = [stack.enter_context(_listener(node, folder / f"{node.name}.heard")) for node in nodes]
        for ear in ears:
            eventually(ear.wake, 90, ear.said)
        yield ears


@contextmanager
def _listener(node: Node, file: Path) -> Iterator[Ear]:
    line = login_for_node(node, "127.0.0.1")
    assert line.url, "the node has no way to the broker"
    told = {"broker_url": line.url, "queue": wakeups.queue_of(node), "broker_ca": line.ca}
    with file.open("w") as out:
        command = [sys.executable, "-c", LISTENER, json.dumps(told)]
        process = subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield Ear(node, file)
    finally:
        process.kill()
        process.wait(10)
