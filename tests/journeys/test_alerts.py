"""Every alert that a simulated GPU can provoke: it fires once, clears once, and a webhook hears of both."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import Process, Scenario, SimGpu, environment, xid
from simulator.models import h100
from tests.hub import Hub, eventually
from tests.journeys.runs import Runs
from tests.workspaces.notifications.receiver import Receiver

pytestmark = pytest.mark.slow
GIB = 2**30
DRIVER_NOT_LOADED = 9
SOFTWARE_THERMAL = 0x20
SETTINGS = {
    # Fractions of minutes: what has to last for a quarter of an hour elsewhere, lasts for seconds here.
    "ALERT_IDLE_MINUTES": "0.3",
    "ALERT_HANG_MINUTES": "0.1",
    "ALERT_THROTTLE_SECONDS": "5",
    "ALERT_STRAY_MINUTES": "0.1",
    "ALERT_PCIE_MINUTES": "0.1",
    "ALERT_UNBALANCED_MINUTES": "0.2",
    "ALERT_LASTING_SECONDS": "5",
    "ALERT_HOLD_SECONDS": "5",
    "ALERT_NVML_SECONDS": "5",
    "ALERT_SILENT_SECONDS": "12",
}
HELD = ("gpu_idle", "fast", "slow")
"""By the two runs, in the order in which GPUs are given."""
BAD_MEMORY = ("gpu_ecc", "gpu_xid")
"""Clear when the GPU was reset: it goes, and comes back."""
PROVOKED = (
    "gpu_idle",
    "gpu_hang",
    "gpu_throttled",
    "gpu_hot",
    "gpu_memory",
    "gpu_ecc",
    "gpu_xid",
    "gpu_rows",
    "gpu_pages",
    "gpu_pcie",
    "gpu_lost",
    "gpu_stray",
)
SLOWLY_S = 150
"""Error counters are read once a minute."""


class Fleet:
    """One GPU for each trouble, in the machine that the tests run on. `gpus`: by the trouble, in the order of
    their numbers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scenario"
        names = [*HELD, *(kind for kind in PROVOKED if kind not in HELD)]
        self.gpus: dict[str, SimGpu] = {name: h100(f"alerts {name}") for name in names}
        self.gpus["gpu_pages"].values["retired_pages_pending"] = 0  # of older models alone
        self.scenario = Scenario(list(self.gpus.values()))
        self.show()

    def show(self) -> None:
        self.scenario.write(self.path)

    def tell(self, **values: dict[str, float]) -> None:
        """GPU -> its values that change."""
        for name, changed in values.items():
            self.gpus[name].values |= changed

    def trouble(self) -> None:
        self.tell(
            gpu_hang={"utilization_pct": 100, "power_w": 80},
            gpu_throttled={"throttle_reasons": SOFTWARE_THERMAL},
            gpu_hot={"temperature_c": 95},
            gpu_memory={"memory_used_bytes": 79 * GIB},
            gpu_ecc={"ecc_uncorrected": 2},
            gpu_rows={"remapped_rows_pending": 1},
            gpu_pages={"retired_pages_pending": 1},
            gpu_pcie={"pcie_width": 4},
            fast={"utilization_pct": 95, "power_w": 600},
            slow={"utilization_pct": 20},
        )
        self.gpus["gpu_xid"].events.append(xid(79))
        self.gpus["gpu_lost"].removed = True
        self.gpus["gpu_stray"].processes = [Process(os.getpid(), 8 * GIB)]
        self.show()

    def repair(self) -> None:
        """All is well again, but for what only a reset mends."""
        self.tell(
            gpu_idle={"utilization_pct": 90},
            fast={"utilization_pct": 90},
            slow={"utilization_pct": 90, "power_w": 600},
            gpu_hang={"power_w": 600},
            gpu_throttled={"throttle_reasons": 0},
            gpu_hot={"temperature_c": 60},
            gpu_memory={"memory_used_bytes": 40 * GIB},
            gpu_rows={"remapped_rows_pending": 0},
            gpu_pages={"retired_pages_pending": 0},
            gpu_pcie={"pcie_width": 16},
        )
        self.gpus["gpu_lost"].removed = False
        self.gpus["gpu_stray"].processes = []
        self.show()

    def take_out(self, *names: str, out: bool) -> None:
        for name in names:
            self.gpus[name].removed = out
        self.show()


class Watched:
    """A hub whose own node has the fleet, and a webhook that hears of everything."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(folder)
        self.receiver = Receiver()
        self.hub = Hub(folder / "data", **SETTINGS, **environment(self.fleet.path))

    def start(self) -> Watched:
        self.hub.start()
        self.runs = Runs(self.hub)
        self.receiver.subscribe_to_alerts(self.runs.client)
        eventually(lambda: len(self.node()["gpus"]) == len(self.fleet.gpus), 30, "the node tells of its GPUs")
        return self

    def node(self) -> dict[str, Any]:
        (node,) = self.runs.get("/nodes/")
        return dict(node)

    def heard(self, event: str) -> Counter[tuple[str, str]]:
        """(kind, trouble that the GPU stands for) of every message that came."""
        return Counter((body["alert"]["kind"], self._name(body)) for body in self.receiver.alerts(event))

    def firing(self) -> set[tuple[str, str]]:
        names = {gpu.uuid: name for name, gpu in self.fleet.gpus.items()}
        found = self.runs.get("/alerts/?state=firing")["results"]
        return {(alert["kind"], names.get(alert["gpu"] or "", "")) for alert in found}

    def _name(self, body: dict[str, Any]) -> str:
        uuid = (body["gpu"] or {}).get("uuid", "")
        return next((name for name, gpu in self.fleet.gpus.items() if gpu.uuid == uuid), "")

    def stop(self) -> None:
        try:
            self.hub.cancel_all()
        finally:
            self.hub.stop()
            self.receiver.stop()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    built = Watched(tmp_path_factory.mktemp("alerts"))
    try:
        yield built.start()
    finally:
        built.stop()


def test_each_trouble_of_a_gpu_is_told_once_and_its_end_once(watched: Watched) -> None:
    waiting = "import time; time.sleep(3600)"
    for gpus in (1, 2):
        run = watched.runs.script(waiting, resources={"gpus_per_node": gpus})
        watched.runs.until(run, "Running")
    watched.fleet.trouble()
    wanted = {(kind, kind) for kind in PROVOKED} | {("run_unbalanced", "slow")}
    eventually(lambda: wanted <= watched.firing(), SLOWLY_S, "all of them fire")
    eventually(lambda: wanted <= watched.heard("alert.fired").keys(), 30, "the webhook hears of all of them")
    assert watched.firing() == wanted

    watched.fleet.repair()
    watched.fleet.take_out(*BAD_MEMORY, out=True)
    reset = {("gpu_lost", name) for name in BAD_MEMORY}
    eventually(lambda: reset <= watched.firing(), 60, "GPUs that are reset are away meanwhile")
    watched.fleet.take_out(*BAD_MEMORY, out=False)
    eventually(lambda: not watched.firing(), SLOWLY_S, "all clear")
    eventually(
        lambda: wanted | reset <= watched.heard("alert.cleared").keys(), 30, "the webhook hears of that too"
    )
    assert watched.heard("alert.fired") == Counter(dict.fromkeys(wanted | reset, 1))
    assert watched.heard("alert.cleared") == watched.heard("alert.fired")


def test_a_driver_that_went_and_a_node_that_fell_silent_are_told_and_their_return(watched: Watched) -> None:
    watched.receiver.got.clear()
    watched.fleet.scenario.init_error = watched.fleet.scenario.call_error = DRIVER_NOT_LOADED
    watched.fleet.show()
    eventually(lambda: ("node_nvml", "") in watched.firing(), 90, "its GPUs cannot be read")
    watched.fleet.scenario.init_error = watched.fleet.scenario.call_error = 0
    watched.fleet.show()
    eventually(lambda: not watched.firing(), 120, "they can be read again")
    agent = watched.hub.pid("agent")
    os.kill(agent, signal.SIGSTOP)
    try:
        eventually(lambda: ("node_silent", "") in watched.firing(), 60, "the node is silent")
    finally:
        os.kill(agent, signal.SIGCONT)
    eventually(lambda: not watched.firing(), 60, "it speaks again")
    wanted = Counter({("node_nvml", ""): 1, ("node_silent", ""): 1})
    eventually(lambda: watched.heard("alert.cleared") == wanted, 30, "the webhook hears of both ends")
    assert watched.heard("alert.fired") == wanted
