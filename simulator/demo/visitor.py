"""A simulated user: it starts small runs now and then, updates the scenarios of the machines, and cancels its
runs when it ends.

python -m simulator.demo.visitor FACTS.json
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.demo.fleet import A100S, FLEET, H100S, HOT_GPU, Moment

FINAL = ("Completed", "Failed", "Canceled")
# Besides the long one.
MAX_RUNS = 3
PAUSE_S = (5.0, 15.0)
LOOK_EVERY_S = 3.0
LEAVING_S = 9.0


@dataclass(frozen=True)
class Facts:
    """`scenarios`: the folder with a file for each machine. `token`: the API token of the user who submits
    the runs. `began`: when the demo started, in Unix seconds."""

    url: str
    token: str
    snapshot: str
    scenarios: str
    began: float

    @classmethod
    def read(cls, path: Path) -> Facts:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True)
class Work:
    """A kind of run: `processes` on each of `nodes`, with a GPU for each process. `arguments`: further ones
    of the script. `all_gpus`: it asks for all GPUs of its nodes, which have one for each process."""

    name: str
    experiment: str
    cluster: str
    nodes: int
    processes: int
    steps: int
    arguments: tuple[str, ...] = ()
    timeout_s: int = 600
    all_gpus: bool = False

    def spec(self, snapshot: str) -> dict[str, object]:
        """Returns the RunSpec that the API takes."""
        ranks = self.nodes * self.processes
        each = {
            "type": "pytorch",
            "communication_backend": "gloo",
            "process_count": ranks,
            "node_count": self.nodes,
        }
        return {
            "version": 1,
            "experiment": self.experiment,
            "display_name": self.name,
            "source": {"type": "snapshot", "id": snapshot},
            "script": "train.py",
            "arguments": [f"--steps={self.steps}", f"--slow-gpu={HOT_GPU}", *self.arguments],
            "distribution": each if ranks > 1 else None,
            "resources": {
                "cluster": self.cluster,
                "gpus_per_node": "all" if self.all_gpus else self.processes,
            },
            "environment": {"name": "system", "version": ""},
            "environment_variables": {"OPENBLAS_NUM_THREADS": "1"},
            "limits": {"timeout_s": self.timeout_s},
            "tags": {"demo": "simulated GPUs"},
        }


FIRST = Work("warm-up on one GPU", "classifier", A100S, 1, 1, 30)
# It runs for half an hour, so that there is always something to watch.
LONG = Work("pre-training", "pre-training", H100S, 1, 4, 7000, ("--learning-rate=0.002",), 3600)
KINDS = (
    Work("one rank goes silent", "classifier", H100S, 1, 4, 300, ("--hangs-at=60",), 240),
    Work("batch too large", "classifier", H100S, 1, 2, 120, ("--breaks-at=60",)),
    Work("whole node", "classifier", H100S, 1, 8, 260, ("--learning-rate=0.01",), all_gpus=True),
    Work("learning rate too high", "learning-rate", A100S, 1, 1, 180, ("--learning-rate=2",)),
    Work("classifier on 2 nodes", "classifier", H100S, 2, 4, 280),
    Work("fine-tune on 4 GPUs", "fine-tune", A100S, 1, 4, 260),
    Work("classifier on 4 nodes", "classifier", H100S, 4, 2, 240),
    Work("fine-tune on 2 GPUs", "fine-tune", A100S, 1, 2, 220, ("--learning-rate=0.005",)),
)


class Visitor:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.leaving = threading.Event()
        self._worlds: dict[str, str] = {}
        self._mine: set[str] = set()
        self._next_at = 0.0
        self._submitted = 0
        self._long_run = ""

    def stay(self) -> None:
        while not self.leaving.is_set():
            self.tend_the_machines()
            try:
                self.train()
            except OSError as error:
                # The hub is starting or stopping, or refuses the run. The next round tries again.
                print(f"Not now: {error}", flush=True)
            self.leaving.wait(LOOK_EVERY_S)

    def tend_the_machines(self) -> None:
        """Writes the scenarios that have changed since the last call."""
        # The library reads a scenario again when its file changes, so equal texts are not written.
        at = Moment(self.facts.began, time.time(), os.getpid())
        for machine in FLEET:
            world = machine.scenario(at)
            if self._worlds.get(machine.name) != world.text():
                self._worlds[machine.name] = world.text()
                world.write(Path(self.facts.scenarios) / machine.name)

    def train(self) -> None:
        """Starts the next run if fewer than MAX_RUNS are active and the pause is over."""
        if time.monotonic() < self._next_at:
            return
        under_way = set(self._under_way())
        self._mine &= under_way
        if self._submitted and self._long_run not in under_way:
            self._long_run = self._start(LONG)
        if len(self._mine) >= MAX_RUNS:
            return
        self._next_at = time.monotonic() + random.uniform(*PAUSE_S)
        work = FIRST if not self._submitted else KINDS[(self._submitted - 1) % len(KINDS)]
        self._mine.add(self._start(work))
        self._submitted += 1

    def _start(self, work: Work) -> str:
        """Submits a run and returns its id."""
        made = self._ask("POST", "runs/", work.spec(self.facts.snapshot))
        print(f"Started {work.name}: run {made.get('number', made['id'])}", flush=True)
        return str(made["id"])

    def leave(self) -> None:
        """Cancels all active runs, and waits for their end for at most LEAVING_S."""
        deadline = time.monotonic() + LEAVING_S
        try:
            for run in self._under_way():
                self._ask("POST", f"runs/{run}/cancel/")
            while self._under_way() and time.monotonic() < deadline:
                time.sleep(0.2)
        except OSError as error:
            print(f"The hub no longer responds: {error}", flush=True)

    def _under_way(self) -> list[str]:
        """Returns the ids of all runs of the workspace that have not ended, whoever submitted them."""
        return [run["id"] for run in self._ask("GET", "runs/")["results"] if run["state"] not in FINAL]

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Returns the JSON object that the hub answers. Raises OSError if it refuses or cannot be reached."""
        headers = {"Authorization": f"Bearer {self.facts.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.facts.url}/api/v1/{path}", data=data, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            raise OSError(
                f"{method} {path}: {error.code} {error.read(2000).decode(errors='replace')}"
            ) from error


def main() -> None:
    visitor = Visitor(Facts.read(Path(sys.argv[1])))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: visitor.leaving.set())
    visitor.stay()
    visitor.leave()


if __name__ == "__main__":
    main()
