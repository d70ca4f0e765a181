"""What measuring costs a machine: the agent and nvitop's exporter side by side, each second, on the same 8
simulated GPUs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from bench.idle import cpu_s
from bench.support.stack import free_port
from simulator import Curve, NoCompiler, Noise, Process, Scenario, Sine, environment
from simulator.build import CACHE
from simulator.models import h100
from tests.node.builders import environ
from tests.node.hub import FakeHub

EXPORTER = ("nvitop-exporter==1.7.2", "nvitop==1.7.2", "prometheus-client")
GPUS = 8
WARM_S = 15
MAX_PCT, MAX_SHARE = 1.5, 1 / 3
MAX_SHARE_WATCHED = 1 / 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="to measure over, each time")
    seconds = parser.parse_args().seconds
    exporter = installed()
    with tempfile.TemporaryDirectory(prefix="th-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        trainings = [
            stack.enter_context(running([sys.executable, "-c", "input()"], stdin=True)) for _ in range(GPUS)
        ]
        env = environment(world(trainings).write(folder / "scenario"))
        hub = stack.enter_context(FakeHub().serving())
        hub.interval_s = 5.0
        port = free_port()
        beside = stack.enter_context(
            running([str(exporter), "--port", str(port), "--interval", "1"], {**os.environ, **env})
        )
        agent = stack.enter_context(
            running([sys.executable, "-m", "trainhub_node", "run"], {**environ(hub, folder), **env})
        )
        hub.wait(lambda: hub.heartbeat and len(hub.heartbeat.gpus) == GPUS, 60)
        await_exporter(port)
        time.sleep(WARM_S)
        idle, nvitop = measured([agent, beside], seconds)
        hub.is_watched, hub.interval_s = True, 1.0
        time.sleep(WARM_S)
        watched, _ = measured([agent, beside], seconds)
        print(
            f"{'TrainHub agent, a report every 5 s':<44} {idle:6.2f} % of a core  {rss_mib(agent):6.1f} MiB"
        )
        print(f"{'TrainHub agent, watched: a report every second':<44} {watched:6.2f} % of a core")
        print(
            f"{'nvitop-exporter 1.7.2, every second':<44} {nvitop:6.2f} % of a core  "
            f"{rss_mib(beside):6.1f} MiB"
        )
        print(
            f"ratio: {idle / nvitop:.2f} (limit {MAX_SHARE:.2f}); limit of the agent: {MAX_PCT} % of a core"
        )
        print(f"seconds with a sample of every GPU while watched: {seen(hub)}")
    print(f"watched: {watched / nvitop:.2f} (limit {MAX_SHARE_WATCHED:.2f})")
    return int(idle > MAX_PCT or idle > nvitop * MAX_SHARE or watched > nvitop * MAX_SHARE_WATCHED)


def world(trainings: Sequence[int]) -> Scenario:
    """Eight busy GPUs with a process each, and every value that an H100 has."""
    busy: dict[str, Curve | float] = {
        "utilization_pct": Sine(70, 25, 30),
        "power_w": Noise(60, 550),
        "temperature_c": Sine(62, 5, 60),
    }
    return Scenario(
        [
            h100(f"bench gpu {index}", values=busy, processes=[Process(pid, 40 * 2**30, sm_pct=80)])
            for index, pid in enumerate(trainings)
        ]
    )


def measured(pids: Sequence[int], seconds: float) -> list[float]:
    """Percent of a core that each process used."""
    before, began = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [100 * (cpu_s(pid) - earlier) / passed for pid, earlier in zip(pids, before, strict=True)]


def rss_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")) / 1024


def seen(hub: FakeHub) -> int:
    return sum(block.steps for block in hub.samples if len(block.subjects) == GPUS)


def installed() -> Path:
    """nvitop's exporter in an environment of its own, made once."""
    folder = CACHE / "bench" / "-".join(EXPORTER[0].split("=="))
    found = folder / "bin" / "nvitop-exporter"
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *EXPORTER], check=True)
    return found


def await_exporter(port: int) -> None:
    """Until it tells of every GPU."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/metrics").text.count("\ngpu_power_usage_W{") == GPUS:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError("nvitop-exporter did not tell of every GPU within 30 s")


@contextmanager
def running(
    argv: Sequence[str], env: Mapping[str, str] | None = None, *, stdin: bool = False
) -> Iterator[int]:
    """The pid of a process that ends with the block."""
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(15)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoCompiler as missing:
        sys.exit(str(missing))
