"""A run in an image: wake-up -> its first line at the hub, beside `podman run` by hand, in turn.

The agent and its container are real; the hub is the small one of the node's tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.stack import summary
from tests.node.builders import script, settings
from tests.node.containers import images
from tests.node.containers.place import SYSTEM
from tests.node.hub import FakeHub
from trainhub_launch.order import EnvironmentSpec
from trainhub_node.agent import Agent

ROUNDS = 15
# 150 ms more on a machine where podman takes 188 ms by hand.
MAX_RATIO = 1.8
SCRIPT = "print('first line', flush=True)\n"


def by_hand(podman: images.Podman, image: str) -> float:
    command = ["podman", "run", "--rm", "--network=host", image, "python3", "-c", SCRIPT]
    started_at = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **podman.variables})
    assert process.stdout is not None
    process.stdout.readline()
    seconds = time.monotonic() - started_at
    process.communicate()
    return seconds


def by_agent(hub: FakeHub, agent: Agent, environment: EnvironmentSpec) -> float:
    order = script(hub, SCRIPT, environment=environment)
    key = order.run, order.attempt
    hub.orders[key] = order
    started_at = time.monotonic()
    agent.wake(*key)
    hub.wait_log(key, b"first line")
    seconds = time.monotonic() - started_at
    hub.wait_done(key)
    return seconds


def measure(folder: Path) -> tuple[list[float], list[float], list[float]]:
    """Returns the times by hand, of runs in a container, and of runs on the node itself."""
    with images.private_podman(folder) as podman, FakeHub().serving() as hub:
        os.environ.update(podman.variables)
        podman.make_image(images.make_root(folder / "root"))
        environment = podman.environment()
        agent = Agent(settings(hub, folder / "node", engine="podman"))
        thread = threading.Thread(target=agent.run)
        thread.start()
        # The trial of the engine is over then.
        hub.wait(lambda: hub.heartbeat and "containers" in hub.heartbeat.capabilities, 60)
        times: tuple[list[float], list[float], list[float]] = ([], [], [])
        for _ in range(ROUNDS + 2):
            times[0].append(by_hand(podman, environment.image["pull"]))
            times[1].append(by_agent(hub, agent, environment))
            times[2].append(by_agent(hub, agent, SYSTEM))
        agent.close()
        thread.join()
    # The first two fill caches.
    return times[0][2:], times[1][2:], times[2][2:]


def main() -> int:
    if not images.has_podman():
        print("not measured: containers need root, podman, runc and catatonit")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="trainhub-bench-", dir="/var/lib"))
    try:
        hand, container, node = measure(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(summary("podman run by hand -> first line", hand))
    print(summary("run in a container: wake-up -> first line at the hub", container))
    print(summary("the same run on the node itself", node))
    limits = Limits()
    print(f"a run adds {(median(container) - median(hand)) * 1e3:.0f} ms to podman run by hand")
    limits.at_most("a run in a container to podman run by hand", median(container) / median(hand), MAX_RATIO)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
