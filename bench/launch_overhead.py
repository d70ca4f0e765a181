"""Launch overhead: the API's answer -> the script's first line in the hub's log, environment cached.

Beside it, in the same run: a plain subprocess, torchrun (`--frameworks-python`) and a Ray job
(`--ray-python`)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.stack import script_ready, stack, summary

MAX_RATIO = 12
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
        snapshot = hub.snapshot({"main.py": SCRIPT})
        out = []
        for round_number in range(rounds + 2):
            run = hub.submit(snapshot, "main.py")
            begun = time.monotonic()
            log = hub.log_file(run)
            while not script_ready(log):
                if time.monotonic() - begun > 30:
                    raise RuntimeError(f"no log after 30 s: {hub.api('GET', f'/runs/{run}/')}")
                time.sleep(0.001)
            if round_number >= 2:
                out.append(time.monotonic() - begun)
            hub.wait(run)
        return out


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
