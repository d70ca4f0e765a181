"""Runs through a real Slurm beside jobs that a person submits there by hand: how long until the first line
and, once canceled, until nothing is left; log latency beside the hub's own nodes; how long many short jobs
take in all, through the hub on its own nodes and in Slurm; and what it costs to follow 250 runs.

Needs root, iproute2 and Debian's packages of Slurm. The machines are network namespaces."""

from __future__ import annotations

import argparse
import shutil
import sys

from bench.slurm.launches import Launches
from bench.slurm.log_lines import measure_log_lines
from bench.slurm.slurm_bench import slurm_bench
from bench.slurm.throughput import measure_throughput
from bench.slurm.watching import Watching
from bench.support.limits import Limits
from tests.harness import guard

PARTS = ("launches", "logs", "watching", "throughput")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--log-rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=500, help="of two seconds, for the part throughput")
    parser.add_argument(
        "--places", type=int, default=16, help="of these jobs, half of them on each node of Slurm"
    )
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    options = parser.parse_args()
    if not shutil.which("slurmctld"):
        print("not measured: there is no Slurm on this machine")
        return 0
    parts = [options.only] if options.only else PARTS
    limits = Limits()
    guard.start()
    try:
        if set(parts) & {"launches", "logs", "watching"}:
            with slurm_bench() as bench:
                if "launches" in parts:
                    Launches(bench).measure(options.rounds, limits)
                if "logs" in parts:
                    measure_log_lines(bench, options.log_rounds, limits)
                if "watching" in parts:
                    Watching(bench).measure(limits)
        if "throughput" in parts:
            measure_throughput(options.jobs, options.places, limits)
    finally:
        guard.stop()
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
