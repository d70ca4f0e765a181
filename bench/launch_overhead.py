"""Launch overhead: the API's answer -> the script's first line in the hub's log, environment cached.

Beside it, in the same run: a plain subprocess, torchrun (`--frameworks-python`) and a Ray job
(`--ray-python`). As root also a second TrainHub that isolates its runs; launches of the two alternate."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.stack import Stack, script_ready, stack, summary
from tests.attacks.server.separated import HUB_ACCOUNT, passable_python, public_folder

MAX_RATIO = 12
# What isolation may add to the median, in bare processes: 15 ms on a machine where one takes 8.3 ms.
MAX_ISOLATION = 1.8
SCRIPT = "print('first line', flush=True)\n"
RAY = """
import time, sys
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient("http://127.0.0.1:8265")
for _ in range(int(sys.argv[1])):
    job = client.submit_job(entrypoint=sys.executable + " -c \\"print('first line', flush=True)\\"")
    begun = time.monotonic()
    while "first line" not in client.get_job_logs(job):
        time.sleep(0.005)
    print("SECONDS", time.monotonic() - begun, flush=True)
"""


def trainhub(rounds: int) -> list[float]:
    with stack() as hub:
        return alternate([hub], rounds)[0]


def isolated(rounds: int) -> list[list[float]]:
    """Returns the times without and with isolation; TrainHubs of both kinds take turns."""
    with public_folder() as folder, ExitStack() as stacks:
        python = passable_python(folder)
        data = folder / "data"
        data.mkdir()
        settings = {"HUB_AS": HUB_ACCOUNT, "LD_LIBRARY_PATH": str(Path(python).parent.parent / "lib")}
        hubs = [
            stacks.enter_context(stack(python=python, LD_LIBRARY_PATH=settings["LD_LIBRARY_PATH"])),
            stacks.enter_context(stack(data, python=python, RUN_AS="range", **settings)),
        ]
        return alternate(hubs, rounds)


def alternate(hubs: Sequence[Stack], rounds: int) -> list[list[float]]:
    """Returns the times of each of the hubs, which launch in turn; the first two launches are left out."""
    snapshots = [hub.snapshot({"main.py": SCRIPT}) for hub in hubs]
    times: list[list[float]] = [[] for _ in hubs]
    for _ in range(rounds + 2):
        for hub, snapshot, own in zip(hubs, snapshots, times, strict=True):
            own.append(launch(hub, snapshot))
    return [own[2:] for own in times]


def launch(hub: Stack, snapshot: str) -> float:
    """Returns the seconds from the API's answer to the first line in the hub's log."""
    run = hub.submit(snapshot, "main.py")
    begun = time.monotonic()
    log = hub.log_file(run)
    while not script_ready(log):
        if time.monotonic() - begun > 30:
            raise RuntimeError(f"no log after 30 s: {hub.api('GET', f'/runs/{run}/')}")
        time.sleep(0.001)
    seconds = time.monotonic() - begun
    hub.wait(run)
    return seconds


def judge_isolation(limits: Limits, bare: float, rounds: int) -> None:
    without, with_isolation = isolated(2 * rounds)
    print(summary("without isolation: API answer -> first line", without))
    print(summary("with isolation: API answer -> first line", with_isolation))
    added = median(with_isolation) - median(without)
    print(
        f"isolation adds {added * 1e3:.1f} ms to the median, where a bare process takes {bare * 1e3:.1f} ms"
    )
    limits.at_most("what isolation adds to a bare process", added / bare, MAX_ISOLATION)


def command(argv: list[str], rounds: int) -> list[float]:
    out = []
    for _ in range(rounds):
        begun = time.monotonic()
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        process.stdout.readline()
        out.append(time.monotonic() - begun)
        process.communicate()
    return out


def ray(python: str, rounds: int) -> list[float]:
    binary = str(Path(python).parent / "ray")
    subprocess.run(
        [binary, "start", "--head", "--disable-usage-stats", "--num-cpus", "2"],
        check=True,
        capture_output=True,
    )
    try:
        done = subprocess.run([python, "-c", RAY, str(rounds)], check=True, capture_output=True, text=True)
    finally:
        subprocess.run([binary, "stop"], check=True, capture_output=True)
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("SECONDS")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--frameworks-python", help="a python with torch, for torchrun")
    parser.add_argument("--ray-python", help="a python with ray[default]")
    options = parser.parse_args()
    limits, launched = Limits(), trainhub(options.rounds)
    print(summary("TrainHub: API answer -> first line in the hub", launched))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "main.py")
        script.write_text(SCRIPT)
        bare = command([sys.executable, str(script)], options.rounds)
        print(summary("subprocess.Popen -> first line", bare))
        limits.at_most("a launch to a bare process", median(launched) / median(bare), MAX_RATIO)
        if os.geteuid() == 0:
            judge_isolation(limits, median(bare), options.rounds)
        if options.frameworks_python:
            torchrun = str(Path(options.frameworks_python).parent / "torchrun")
            print(
                summary(
                    "torchrun -> first line", command([torchrun, "--nproc-per-node", "1", str(script)], 5)
                )
            )
    if options.ray_python:
        print(
            summary(
                "Ray job: submitted -> first line in its log", ray(options.ray_python, min(options.rounds, 8))
            )
        )
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
