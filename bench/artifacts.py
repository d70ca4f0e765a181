"""A large artifact up and down beside MLflow's own server: the same unmodified client, by turns; and the
hub's memory.

python -m bench.artifacts [--mb 500] [--rounds 3] [--parts]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.idle import cpu_s
from bench.support.limits import Limits
from bench.support.peak_memory import forget_peak, peak_mib
from bench.support.stack import ROOT, stack
from bench.tracking import QUIET, mlflow

MB = 1_000_000
PARTS = {"MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "true", "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE": "1"}


@dataclass(frozen=True)
class Server:
    name: str
    url: str
    token: str
    pid: int


@dataclass
class Timed:
    """Seconds of each round."""

    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)


@contextmanager
def hub() -> Iterator[Server]:
    """`pid`: of the process that serves the web."""
    with stack() as running:
        pid = int((running.data / "run" / "web.pid").read_text())
        yield Server("TrainHub", running.url, running.token, pid)


def turn(server: Server, python: str, file: Path, timed: Timed) -> None:
    env = {**os.environ, **QUIET, "MLFLOW_TRACKING_URI": server.url, "MLFLOW_TRACKING_TOKEN": server.token}
    argv = [python, "-m", "bench.support.mlflow_artifacts", str(file)]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{server.name}: {done.stderr[-1500:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if not told["same"]:
        raise RuntimeError(f"{server.name} gave other bytes than it got")
    timed.up.append(told["up_s"])
    timed.down.append(told["down_s"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--parts", action="store_true", help="TrainHub alone, in parts: MLflow's server takes none"
    )
    options = parser.parse_args()
    python = subprocess.run(
        [ROOT / ".ci" / "mlflow-env"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    with (
        tempfile.TemporaryDirectory(prefix="th-bench-art-") as folder,
        hub() as ours,
        mlflow(python, "") as side,
    ):
        theirs = Server(side.name, side.url, side.token, 0)
        file = Path(folder, "weights.bin")
        with file.open("wb") as out:
            for _ in range(options.mb):
                out.write(os.urandom(MB))
        before = forget_peak(ours.pid)
        timed = {server.name: Timed() for server in (ours, theirs)}
        spent = cpu_s(ours.pid)
        if options.parts:
            os.environ.update(PARTS)
        for _ in range(options.rounds):
            for server in (ours,) if options.parts else (ours, theirs):
                turn(server, python, file, timed[server.name])
        after, spent = peak_mib(ours.pid), cpu_s(ours.pid) - spent
    for name, took in timed.items():
        for word, seconds in (("up", took.up), ("down", took.down)):
            if seconds:
                shown = ", ".join(f"{options.mb / second:.0f}" for second in seconds)
                print(
                    f"{name:<9} {word:<5} {options.mb / statistics.median(seconds):6.0f} MB/s "
                    f"(rounds: {shown})"
                )
    print(f"TrainHub's web process took {spent / options.rounds:.2f} s of a core for each file up and down")
    print(f"TrainHub's web process held {before:.0f} MiB before and at most {after:.0f} MiB meanwhile")
    limits, ours_took, theirs_took = Limits(), timed[ours.name], timed[theirs.name]
    if theirs_took.up:
        # MLflow's server neither hashes the file nor waits until it is on the disk.
        limits.at_most("uploads", statistics.median(ours_took.up) / statistics.median(theirs_took.up), 1.3)
        limits.at_most(
            "downloads", statistics.median(ours_took.down) / statistics.median(theirs_took.down), 1.0
        )
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
