"""What TrainHub costs when nothing runs: start to first answer, memory (PSS) of the whole stack, CPU.

The reference is a process that imports the libraries which TrainHub is made of, and nothing else."""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.support.limits import Limits
from bench.support.stack import stack

LIBRARIES = "import celery.app, numpy, redis, starlette.applications, uvicorn, channels, django.db, msgpack"
REPORT = f"""
import resource, pathlib
{LIBRARIES}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
print(pathlib.Path("/proc/self/smaps_rollup").read_text())
"""
# CPU of all processes until the first answer, memory of the stack, and CPU of the worker in a minute: each
# divided by what importing the libraries costs.
MAX_START, MAX_MEMORY, MAX_WORKER = 14.0, 8.0, 1.5


def pss_mib(pid: int) -> float:
    return _pss_mib(Path(f"/proc/{pid}/smaps_rollup").read_text())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scheduled_s(pid: int) -> float:
    """Returns the CPU seconds of a process as the scheduler counts them, to the nanosecond: also those of
    threads that have ended, of which the web server has one for each request to Django."""
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if error:
        raise ProcessLookupError(error, os.strerror(error))
    return time.clock_gettime(clock.value)


def name(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()[-72:]


def libraries() -> tuple[float, float]:
    """Returns the CPU seconds and MiB of a process that imports the libraries: the least of three."""
    seen = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", REPORT], check=True, capture_output=True, text=True)
        seconds, _, rest = done.stdout.partition("\n")
        seen.append((float(seconds), _pss_mib(rest)))
    return min(seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="idle time to measure over")
    idle = parser.parse_args().seconds
    limits, (library_s, library_mib) = Limits(), libraries()
    print(f"importing the libraries: {library_s:.2f} s of CPU, {library_mib:.0f} MiB")
    with tempfile.TemporaryDirectory(prefix="th-bench-") as folder:
        with stack(Path(folder)) as hub:
            print(f"first start, with a new data folder -> first answer: {hub.started_s:.2f} s")
        with stack(Path(folder)) as hub:
            started_s = hub.started_cpu_s
            print(f"start -> first answer: {hub.started_s:.2f} s, {started_s:.2f} s of CPU")
            limits.at_most("the start's CPU", started_s / library_s, MAX_START)
            time.sleep(10)
            worker = int((hub.data / "run" / "worker.pid").read_text())
            before = {pid: scheduled_s(pid) for pid in hub.pids()}
            time.sleep(idle)
            total = 0.0
            for pid in hub.pids():
                total += pss_mib(pid)
                busy_s = scheduled_s(pid) - before.get(pid, 0)
                print(f"  {pss_mib(pid):7.1f} MiB  {busy_s / idle * 100:5.2f} % CPU  {name(pid)}")
                if pid == worker:
                    limits.at_most("the worker's CPU in a minute", busy_s / idle * 60 / library_s, MAX_WORKER)
            print(f"PSS of the whole stack: {total:.0f} MiB")
            limits.at_most("the stack's memory", total / library_mib, MAX_MEMORY)
    return limits.exit_code()


def _pss_mib(smaps: str) -> float:
    return next(int(line.split()[1]) for line in smaps.splitlines() if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    sys.exit(main())
