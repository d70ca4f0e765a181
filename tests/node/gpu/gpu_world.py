"""An agent's GPUs in a process of their own: the real pynvml beside a simulated driver, and a clock that the
test moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator import Scenario, environment
from simulator.models import h100
from tests.hub import eventually
from trainhub_launch.machine import GpuFact
from trainhub_launch.telemetry import GpuEvent, GpuProcess

LONG = 61.0
"""Longer than an agent ever waits before it tries again."""
SCENARIO_POLL_S = 0.005
"""The simulator looks for a new scenario at most every 4 ms."""

CODE = """
import json, logging, sys
from dataclasses import asdict
logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(message)s", filename=sys.argv[1])
from trainhub_node.gpu.nvml.nvml_library import Gpus
gpus = Gpus()
for line in sys.stdin:
    order = json.loads(line)
    gpus.confirm(order["confirm"])
    facts = [asdict(fact) for fact in gpus.read(order["now"])]
    events = [asdict(event) for event in gpus.events()]
    print(json.dumps({"facts": facts, "events": events, "trouble": gpus.trouble,
                      "driver": gpus.driver, "cuda": gpus.cuda}), flush=True)
gpus.close()
"""


@dataclass(frozen=True)
class WorldSnapshot:
    """`gpus`: by UUID, in their order."""

    gpus: dict[str, GpuFact]
    events: tuple[GpuEvent, ...]
    trouble: str
    driver: str
    cuda: str

    @property
    def only(self) -> GpuFact:
        (one,) = self.gpus.values()
        return one

    @property
    def event_kinds(self) -> list[tuple[str, str]]:
        return [(event.kind, event.gpu) for event in self.events]


class World:
    """`scenario` None: a machine without the library."""

    def __init__(self, scenario: Scenario | None, folder: Path, **env: str) -> None:
        self.scenario = scenario or Scenario()
        self.log = folder / "agent.log"
        self.now = 1000.0
        self._path = folder / "scenario"
        result: Mapping[str, str] = environment(self.scenario.write(self._path)) if scenario else {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(self.log)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **result, **env},
        )

    def change(self) -> None:
        """What the test did to the scenario holds for the next reading."""
        self.scenario.write(self._path)
        time.sleep(SCENARIO_POLL_S)

    def read(self, after_s: float = 1.0, *, confirm: int = 0) -> WorldSnapshot:
        self.now += after_s
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"now": self.now, "confirm": confirm}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()}: {self.log.read_text()}"
        report: dict[str, Any] = json.loads(line)
        return WorldSnapshot(
            gpus={fact["uuid"]: _fact(fact) for fact in report.pop("facts")},
            events=tuple(GpuEvent(**event) for event in report.pop("events")),
            **report,
        )

    def until(self, is_so: Callable[[WorldSnapshot], object], after_s: float = 0.0) -> WorldSnapshot:
        """The first reading of which that is so."""
        return eventually(lambda: snapshot if is_so(snapshot := self.read(after_s)) else None)

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if all(word in line for word in words)]

    def __enter__(self) -> World:
        return self

    def end(self) -> int:
        """As an agent ends: its exit code."""
        self.process.communicate()
        return self.process.returncode

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def two_gpus() -> Scenario:
    return Scenario([h100("first"), h100("second")])


def _fact(data: dict[str, Any]) -> GpuFact:
    return GpuFact(**{**data, "processes": tuple(GpuProcess(**one) for one in data["processes"])})
