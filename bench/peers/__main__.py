"""Four hosts that read the same dataset at the same time from a store with a line of 200 Mbit/s, beside one
that reads as much alone: how long until all are ready, and how often a byte leaves the store.

Needs root and iproute2. The hosts are network namespaces; a limit of the kernel (TBF) stands for the line.
All hosts share the cores of this machine, which also encrypt and hash for all of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.support.limits import Limits
from tests.harness import guard
from tests.hosts.data.peer_hosts import PeerHosts, StoredFiles, Trained

NODES, MBIT = 4, 200
# Files, and the bytes of each: 600 MB of large ones, and 500 MB of small ones.
LARGE, SMALL = (4, 150_000_000), (10_000, 50_000)
MAX_TIME_RATIO, MAX_SENT_RATIO = 1.3, 1.1


def check(trained: Trained, files: StoredFiles) -> Trained:
    if trained.detail["state"] != "Completed" or any(files.digest not in log for log in trained.logs):
        raise RuntimeError(f"a run has not read its data: {trained.detail['sentence']} {trained.preparation}")
    return trained


def measure(hosts: PeerHosts, name: str, port: int, size: tuple[int, int], limits: Limits) -> None:
    # A set for each: what a node has is not downloaded again.
    alone, together = StoredFiles(port, *size), StoredFiles(port + 1, *size)
    hosts.add_dataset(f"{name}-one", alone)
    hosts.add_dataset(f"{name}-all", together)
    one = check(hosts.train(f"{name}-one", 1), alone)
    several = check(hosts.train(f"{name}-all", NODES), together)
    print(f"{name}: one host {one.seconds:.1f} s, all {NODES} hosts {several.seconds:.1f} s")
    print(f"{name}: {one.sent / 1e6:,.1f} MB on the wire for one host, {several.sent / 1e6:,.1f} MB for all")
    for text in several.preparation:
        print(*(line for line in text.splitlines() if "downloaded" in line), sep="\n")
    times, sent = several.seconds / one.seconds, several.sent / one.sent
    limits.at_most(f"{name}: time of all hosts to that of one", times, MAX_TIME_RATIO)
    limits.at_most(f"{name}: bytes for all hosts to those for one", sent, MAX_SENT_RATIO)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the runs")
    parser.add_argument("--folder", type=Path, help="on a disk with 8 GB to spare")
    options = parser.parse_args()
    limits = Limits()
    guard.start()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        guard.own_folder(folder)
        hosts = PeerHosts(Path(folder), options.python, NODES, MBIT)
        try:
            hosts.start()
            measure(hosts, "large", 8801, LARGE, limits)
            measure(hosts, "small", 8803, SMALL, limits)
        finally:
            hosts.stop()
            guard.stop()
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
