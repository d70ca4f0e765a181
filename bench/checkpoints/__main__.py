"""What it costs the ranks that the agent delivers their checkpoints to the hub, beside `rclone copy` of the
same files; and how long a run whose node is lost takes to its first step on another one.

Needs root, iproute2 and rclone. The nodes are network namespaces with one core each. By default a checkpoint
is 4 files of 500 MB, saved every 30 s; 25 GB of disk and 10 minutes are needed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.checkpoints.checkpoint_hosts import CheckpointHosts
from bench.checkpoints.training import HUB, QUIET, RCLONE
from bench.support.limits import Limits, median
from tests.harness import guard
from tests.hub import eventually

FILES, MEGABYTES, INTERVAL_S, ROUNDS, RESUMES = 4, 500, 30.0, 3, 3
MAX_COST_RATIO = 1.2
# Of copying by hand; the launch itself is added.
MAX_COPY_RATIO = 1.2


def measure_cost(hosts: CheckpointHosts, rounds: int, interval: float, limits: Limits) -> None:
    """A run of one node saves every `interval` seconds, and in turn nothing uploads, rclone, TrainHub."""
    ways = [QUIET, RCLONE, HUB]
    windows = [way for number in range(rounds) for way in ways[number % 3 :] + ways[: number % 3]]
    hosts.lose(hosts.hosts[1])
    run = hosts.train(windows, interval)
    told, kept_at = watch(hosts, run, len(windows), interval)
    by_way = {way: [line for line in told if line["way"] == way] for way in ways}
    for line in by_way[HUB]:
        line["copied"] = kept_at[line["name"]] - line["began_at"]
    for way, lines in by_way.items():
        print_windows(way, lines, interval)
    rate = sum(line["steps"] for line in by_way[QUIET]) / sum(line["seconds"] for line in by_way[QUIET])
    lost = {
        way: sum(line["seconds"] - line["steps"] / rate for line in by_way[way]) / rounds for way in ways[1:]
    }
    for way, seconds in lost.items():
        print(f"cost of a checkpoint, {way}: {seconds:.2f} s of training of {interval:g} s")
    if lost[RCLONE] <= 0:
        raise RuntimeError("rclone has cost the ranks nothing: other load is larger than what is measured")
    limits.at_most("cost to the ranks, TrainHub to rclone copy", lost[HUB] / lost[RCLONE], MAX_COST_RATIO)
    hosts.cancel(run)
    hosts.bring_back(hosts.hosts[1])


def watch(
    hosts: CheckpointHosts, run: str, windows: int, interval: float
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Returns what the rank has told of each window, and when the hub had each checkpoint (Unix seconds)."""
    kept_at: dict[str, float] = {}

    def told() -> list[dict[str, Any]] | None:
        for row in hosts.checkpoints(run, "complete"):
            kept_at[row["name"]] = datetime.fromisoformat(row["finished_at"]).timestamp()
        # The next save removes the files of the last one.
        if torn := [row for row in hosts.checkpoints(run, "torn") if row["name"] not in kept_at]:
            raise RuntimeError(f"the interval is too short for an upload: {torn[0]['detail']}")
        _, *lines = hosts.lines(run) or [{}]
        saved = {line["name"] for line in lines if line["way"] == HUB}
        return lines if len(lines) == windows and saved <= kept_at.keys() else None

    return eventually(told, windows * (interval + 60), "all checkpoints are kept") or [], kept_at


def print_windows(way: str, lines: list[dict[str, Any]], interval: float) -> None:
    rates = ", ".join(f"{line['steps'] / line['seconds']:.0f}" for line in lines)
    saves = ", ".join(f"{line['save']:.1f}" for line in lines)
    longest = max(line["longest_step"] for line in lines)
    print(f"{way}: {rates} steps/s; saves {saves} s; longest step {longest * 1e3:.0f} ms")
    if way == QUIET:
        return
    uploads = ", ".join(f"{line['copied']:.1f}" for line in lines)
    print(f"{way}: uploaded after {uploads} s")
    if any(line["copied"] > interval for line in lines):
        # A part of the upload was counted in the next window.
        raise RuntimeError(f"{way} needs more than {interval:g} s for a checkpoint: choose a longer interval")


def measure_resume(hosts: CheckpointHosts, rounds: int, limits: Limits) -> None:
    """Crashes the second node with a run that has saved, and takes the time on the first one, whose core is
    its own; then that of a launch and of a copy by hand there."""
    resumes, launches, copies = [], [], []
    first, second = hosts.hosts
    for _ in range(rounds):
        hosts.lose(first)
        run = hosts.train([HUB], retries=1)
        hosts.await_checkpoint(run)
        hosts.bring_back(first)
        hosts.lose(second)
        resumes.append(hosts.first_step(run, with_files=True))
        hosts.cancel(run)
        bare = hosts.train()
        launches.append(hosts.first_step(bare, with_files=False))
        hosts.cancel(bare)
        copies.append(hosts.copy_by_hand(first))
        hosts.bring_back(second)
    for name, seconds in (("resume", resumes), ("launch", launches), ("rclone copy by hand", copies)):
        print(f"{name}: {', '.join(f'{value:.2f}' for value in seconds)} s")
    extra = median(resumes) - median(launches)
    limits.at_most(
        "what a resume adds to a launch, to copying by hand", extra / median(copies), MAX_COPY_RATIO
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the runs, with NumPy")
    parser.add_argument("--folder", type=Path, help="on a disk with 25 GB to spare")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="of each file")
    parser.add_argument("--interval", type=float, default=INTERVAL_S, help="seconds from save to save")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="checkpoints of each way; 0: none")
    parser.add_argument("--resumes", type=int, default=RESUMES, help="crashes of a node; 0: none")
    options = parser.parse_args()
    if shutil.which("rclone") is None:
        parser.error("rclone is not installed: apt-get install rclone")
    limits = Limits()
    guard.start()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        guard.own_folder(folder)
        size = options.megabytes * 1_000_000
        hosts = CheckpointHosts(Path(folder), options.python, options.files, size)
        try:
            hosts.start()
            print(f"load {os.getloadavg()[0]:.1f} before")
            if options.rounds:
                measure_cost(hosts, options.rounds, options.interval, limits)
            if options.resumes:
                measure_resume(hosts, options.resumes, limits)
        finally:
            hosts.stop()
            guard.stop()
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
