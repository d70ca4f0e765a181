"""100 MB of log from two ranks: first byte written -> both logs whole in the hub (SHA-256), beside a plain
file copy."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.support.limits import Limits
from bench.support.stack import stack

MIN_RATIO = 0.02
SCRIPT = """
import hashlib, os, sys, time
digest, rank = hashlib.sha256(), os.environ["RANK"]
line = (f"rank {{rank}} " + "x" * 110 + "\\n").encode()
block = b"".join(line.replace(b"xxxxxxxx", b"%08d" % number, 1) for number in range(8192))
begun, left = time.time(), {bytes}
while left > 0:
    part = block[:left]
    sys.stdout.buffer.write(part)
    digest.update(part)
    left -= len(part)
sys.stdout.flush()
os.makedirs("outputs", exist_ok=True)
open(f"outputs/rank_{{rank}}.txt", "w").write(f"{{begun}} {{digest.hexdigest()}}")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    size = parser.parse_args().megabytes * 1_000_000 // 2
    with stack() as hub:
        snapshot = hub.snapshot({"main.py": SCRIPT.format(bytes=size)})
        distribution = {
            "type": "pytorch",
            "process_count": 2,
            "node_count": 1,
            "communication_backend": "gloo",
        }
        run = hub.submit(snapshot, "main.py", distribution=distribution)
        logs = [hub.log_file(run, f"70_driver_log_{rank}.txt") for rank in (0, 1)]
        deadline = time.monotonic() + 120
        while not all(log.exists() and log.stat().st_size >= size for log in logs):
            if time.monotonic() > deadline:
                raise RuntimeError(f"logs not whole after 120 s: {hub.api('GET', f'/runs/{run}/')}")
            time.sleep(0.002)
        ended = time.time()
        state = hub.wait(run)["state"]
        begun = ended
        for rank, log in enumerate(logs):
            told = hub.client.get(f"{hub.url}/api/v1/runs/{run}/outputs/rank_{rank}.txt").text.split()
            begun = min(begun, float(told[0]))
            if hashlib.sha256(log.read_bytes()).hexdigest() != told[1]:
                raise RuntimeError(f"rank {rank}: the hub's log differs from what was written")
        total, received_s = 2 * size / 1e6, ended - begun
        print(
            f"TrainHub: {total:.0f} MB from 2 ranks, SHA-256 equal, run {state}: "
            f"{total / received_s:8.1f} MB/s"
        )
        with tempfile.TemporaryDirectory() as folder:
            begun = time.time()
            for log in logs:
                shutil.copyfile(log, Path(folder, log.name))
            copied_s = time.time() - begun
            print(f"plain file copy of the same bytes:                        {total / copied_s:8.1f} MB/s")
        limits = Limits()
        limits.at_least("the hub's log to a file copy", copied_s / received_s, MIN_RATIO)
        return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
