"""What TrainHub costs when nothing runs: start to first answer, memory (PSS) of the whole stack, CPU."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from bench.support.stack import stack


def pss_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def name(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()[-72:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="idle time to measure over")
    idle = parser.parse_args().seconds
    with stack() as hub:
        print(f"start -> first answer: {hub.started_s:.2f} s")
        time.sleep(5)
        before = {pid: cpu_s(pid) for pid in hub.pids()}
        time.sleep(idle)
        total = 0.0
        for pid in hub.pids():
            total += pss_mib(pid)
            busy = (cpu_s(pid) - before.get(pid, 0)) / idle * 100
            print(f"  {pss_mib(pid):7.1f} MiB  {busy:5.1f} % CPU  {name(pid)}")
        print(f"PSS of the whole stack: {total:.0f} MiB")


if __name__ == "__main__":
    main()
