"""`manage.py up --demo`: a fleet that is not there, and trainings that are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from simulator.demo.fleet import FLEET, LOST_AFTER_S, Machine, Moment
from simulator.demo.visitor import FIRST, KINDS, LONG
from tests.hub import Hub, eventually
from tests.simulator.worlds import ask
from trainhub import installation
from trainhub.demo.past import SETTLED_AFTER_S
from trainhub.demo.story import DAYS, MODEL, PAST, SILENT, STEPS
from trainhub.up import demo as demo_processes
from trainhub.up.demo_folder import turn_to
from trainhub_launch.spec_reader import read_spec

SEE = """
nvml.nvmlInit()
def uuid(i):
    h = attempt(nvml.nvmlDeviceGetHandleByIndex, i)
    return h if isinstance(h, str) else nvml.nvmlDeviceGetUUID(h)
tell(uuids=[uuid(i) for i in range(nvml.nvmlDeviceGetCount())])
"""


class Demo(Hub):
    arguments = ("up", "--demo")
    is_new = True

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, DEMO_DIR=str(folder), **settings)

    def asked(self, path: str) -> list[dict[str, Any]]:
        with self.client() as client:
            told = client.get(f"/api/v1/{path}").raise_for_status().json()
        return list(told["results"] if isinstance(told, dict) else told)


@pytest.fixture(scope="class")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = Demo(tmp_path_factory.mktemp("demo") / "data")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def processes_inside(folder: Path) -> list[str]:
    """Returns the processes that still have their working folder in there, also if it is deleted."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.slow
class TestDemo:
    def test_machines_with_gpus_train(self, demo: Demo) -> None:
        said = demo.said()
        assert "its 6 machines and 40 GPUs are simulated" in said
        assert f"Its data is in a separate folder, {demo.data_dir}" in said
        assert f"Later, sign in as admin with the password {demo.password}\n" in said
        names = {machine.name for machine in FLEET}
        eventually(
            lambda: {node["name"] for node in demo.asked("nodes/") if node["gpus"]} == names,
            60,
            "all have GPUs",
        )
        eventually(lambda: any(_most_used(node) > 50 for node in demo.asked("nodes/")), 90, "a GPU works")
        done = eventually(
            lambda: [
                run
                for run in demo.asked("runs/?page_size=100")
                if run["state"] == "Completed" and run["number"] > len(PAST)
            ],
            120,
            "a run is Completed",
        )
        with demo.client() as client:
            log = client.get(f"/api/v1/runs/{done[0]['id']}/logs/70_driver_log.txt").raise_for_status().text
            logged = client.get(f"/api/v1/runs/{done[0]['id']}/metrics/").raise_for_status().json()
        assert {"loss", "accuracy", "lr", "samples_per_s"} <= {item["key"] for item in logged["metrics"]}
        losses = [float(line.split("loss ")[1].split()[0]) for line in log.splitlines() if "loss " in line]
        assert losses[-1] < losses[0] / 2

    def test_it_has_a_past_and_a_way_in_and_out(self, demo: Demo) -> None:
        past = [run for run in demo.asked("runs/?page_size=100") if run["number"] <= len(PAST)]
        assert len(past) == len(PAST)
        states = Counter(run["state"] for run in past)
        assert states == {
            "Completed": len(PAST) - 4,
            "Failed": sum(bool(past_run.breaks_at) for past_run in PAST),
            "Canceled": 1,
        }
        assert min(run["created_at"] for run in past) < _days_ago(DAYS - 2)
        with demo.client() as client:
            model = client.get(f"/api/v1/models/{MODEL}/").raise_for_status().json()
            usage = client.get("/api/v1/usage/?by=user").raise_for_status().json()
        assert model["aliases"] == {"production": 2, "candidate": 3}
        assert usage["total"]["runs"] >= len(PAST)
        assert usage["total"]["measured_gpu_hours"] == pytest.approx(
            sum(past_run.ranks * past_run.minutes * past_run.steps / STEPS for past_run in PAST) / 60,
            rel=0.05,
        )
        link = re.search(r"signed in \(once\): (\S+)", demo.said())
        assert link is not None
        with httpx.Client(base_url=demo.url, follow_redirects=True, timeout=60) as browser:
            path = urlsplit(link[1]).path
            page = browser.get(path).raise_for_status()
            assert page.url.path == "/"
            assert "Things to try" in page.text
            assert page.text.count("<strong>See why run") == 1
            offered = eventually(
                lambda: _all_steps(browser.get("/").text), 60, "the visitor's first runs start"
            )
            addresses = re.findall(r'href="([^"]+)"', offered)
            for address in addresses:
                assert browser.get(unescape(address)).status_code == httpx.codes.OK, address
            with httpx.Client(base_url=demo.url, follow_redirects=True, timeout=60) as second:
                assert second.get(path).url.path == "/sign-in/"
            token = {"X-CSRFToken": browser.cookies[demo.cookie("csrftoken")], "Referer": demo.url}
            hello = re.search(r'action="([^"]+)"', offered)
            assert hello is not None
            review = browser.post(hello[1], headers=token).raise_for_status()
            assert review.url.path.endswith("/review/")
            assert browser.post("/demo/remove/", headers=token).status_code == httpx.codes.OK
        eventually(lambda: not demo.data_dir.exists(), 120, "the folder of the demo is removed")
        # It ends by itself now; a signal in its last moment would end it otherwise.
        assert demo.process is not None
        assert demo.process.wait(60) == 0
        assert processes_inside(demo.data_dir) == []

    def test_a_machine_without_a_compiler_is_told_so(self, tmp_path: Path) -> None:
        refused = Demo(tmp_path / "demo", PATH=str(tmp_path))
        with pytest.raises(AssertionError):
            refused.start()
        assert refused.stop() == 1
        assert "Simulated GPUs need a C compiler" in refused.said()

    def test_a_folder_with_real_data_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "secret-key").write_text("of a real one")
        refused = Demo(tmp_path / "real")
        with pytest.raises(AssertionError):
            refused.start()
        assert refused.stop() == 1
        assert "contains a TrainHub that is not a demo" in refused.said()
        assert [path.name for path in (tmp_path / "real").iterdir()] == ["secret-key"]


# Starts processes one after the other, also while all processes are looked at.
STARTING = """
import os, time
for _ in range(500):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""


def test_trainings_that_start_processes_leave_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_processes, "MACHINES", tmp_path)
    with subprocess.Popen([sys.executable, "-c", STARTING], cwd=tmp_path) as training:
        eventually(lambda: len(processes_inside(tmp_path)) > 2, 20, "it starts processes")
        demo_processes.end_leftovers()
        assert training.wait(10) == -signal.SIGKILL
    assert processes_inside(tmp_path) == []


class TestFolder:
    def test_nothing_of_a_real_installation_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = {
            "DATA_DIR": "/srv/real",
            "DATABASE_URL": "postgres://real",
            "BROKER_URL_FILE": "/srv/broker",
            "OPEN": "1",
        }
        monkeypatch.setattr(
            os, "environ", {**real, "DEMO_DIR": str(tmp_path), "BIND": "127.0.0.1:8100", "PATH": "/bin"}
        )
        turn_to()
        assert os.environ == {
            "DATA_DIR": str(tmp_path),
            "DEMO_DIR": str(tmp_path),
            "BIND": "127.0.0.1:8100",
            "PATH": "/bin",
            # Its machines are simulated, and their trainings are its own.
            "RUN_AS": "root",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def test_it_lies_beside_the_real_one_unless_said_otherwise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "environ", {})
        turn_to()
        assert os.environ == {
            "DATA_DIR": str(installation.BASE_DIR / "data-demo"),
            "RUN_AS": "root",
            "OPENBLAS_NUM_THREADS": "1",
        }


@pytest.mark.parametrize("machine", FLEET, ids=lambda machine: machine.name)
class TestFleet:
    def test_its_scenario_is_understood(self, tmp_path: Path, machine: Machine) -> None:
        at = Moment(time.time(), time.time(), foreign_pid=1)
        told = ask(machine.scenario(at).write(tmp_path / "scenario"), SEE)
        assert told["uuids"] == [gpu.uuid for gpu in machine.scenario(at).gpus]

    def test_it_is_the_same_until_something_happens(self, machine: Machine) -> None:
        assert machine.scenario(Moment(1000, 1001)).text() == machine.scenario(Moment(1000, 1100)).text()


def test_a_gpu_falls_off_the_bus_and_comes_back(tmp_path: Path) -> None:
    machine = next(machine for machine in FLEET if machine.name == "sim-h100-4")
    began = time.time()
    for age, expected in ((0, 8), (LOST_AFTER_S + 1, 7), (LOST_AFTER_S + 130, 8)):
        told = ask(machine.scenario(Moment(began, began + age)).write(tmp_path / "scenario"), SEE)
        assert sum(uuid.startswith("GPU-") for uuid in told["uuids"]) == expected, age


def test_the_past_fits_on_the_machines() -> None:
    """No two runs overlap, so that each finds the GPUs that it needs free, and is measured alone."""
    ends = [past_run.days - (past_run.minutes + SETTLED_AFTER_S / 60) / (24 * 60) for past_run in PAST]
    assert all(end > later.days for end, later in zip(ends, PAST[1:], strict=False))
    assert max(past_run.days for past_run in PAST) < DAYS
    assert {past_run.cluster for past_run in PAST} <= {machine.cluster for machine in FLEET}


def test_the_visitor_starts_the_run_that_the_dashboard_offers() -> None:
    assert SILENT in {work.name for work in KINDS}


@pytest.mark.parametrize("work", [FIRST, LONG, *KINDS], ids=lambda work: work.name)
def test_what_the_visitor_submits_is_a_spec(work: Any) -> None:
    spec = read_spec(work.spec("0" * 64))
    assert spec.node_count == work.nodes
    gpus = 0 if work.all_gpus else work.processes
    assert (spec.resources.gpus_per_node, spec.resources.all_gpus) == (gpus, work.all_gpus)


def _all_steps(page: str) -> str:
    """Returns the list of the dashboard once it has four links beside its button, else ""."""
    offered = page.partition('class="th-try"')[2].partition("</ol>")[0]
    return offered if offered.count("href=") == 4 else ""


def _days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def _most_used(node: dict[str, Any]) -> float:
    return max((gpu["numbers"].get("utilization_pct", 0) for gpu in node["gpus"]), default=0)
