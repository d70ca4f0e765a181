"""Shipping of runs' logs: CPU per MB by OTLP and to Loki, beside a program that reads the same bytes,
compresses and posts them; and which share of a core the worker takes while it has a backlog."""

from __future__ import annotations

import argparse
import gzip
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.support.limits import Limits, median

ROOT = Path(__file__).resolve().parents[2]
CHUNK_BYTES = 2**20
ROUNDS = 3
# Each line becomes a record with its own time, is decoded, checked for its length, and encoded; the program
# beside it looks at no line.
MAX_RATIO = 10.0
# Beside the worker's other tasks; half of a core is what the code aims at.
MAX_CORE_SHARE = 0.65


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=32)
    size = parser.parse_args().megabytes * 1_000_000
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="th-bench-ship-") as folder, _sink() as port:
        os.environ |= {"DATA_DIR": folder, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "trainhub.settings"}
        for name in [name for name in os.environ if name.startswith("SHIP_LOGS_")]:
            del os.environ[name]
        # Only now: the settings are read when this module is imported.
        from bench.log_shipping.shipping_run import ShippingRun  # noqa: PLC0415

        run = ShippingRun(_text(size))
        by_hand = [_cpu_by_hand(run.log, port) for _ in range(ROUNDS)]
        print(f"{size / 1e6:.0f} MB of log, {run.lines:,} lines; CPU of the sender alone:")
        print(f"  read, gzip -1, POST by hand      {_per_mb(median(by_hand), size)}")
        for kind in ("otlp", "loki"):
            cost = [run.ship(kind, f"http://127.0.0.1:{port}") for _ in range(ROUNDS)]
            cpu_s, wall_s = median([cpu for cpu, _ in cost]), median([wall for _, wall in cost])
            print(
                f"  TrainHub, {kind}                   {_per_mb(cpu_s, size)}, {size / 1e6 / wall_s:.1f} MB/s"
            )
            limits.at_most(f"CPU, {kind} by hand", cpu_s / median(by_hand), MAX_RATIO)
            limits.at_most(f"a core, {kind}", cpu_s / wall_s, MAX_CORE_SHARE)
    return limits.exit_code()


def _text(size: int) -> bytes:
    chance = random.Random(1)
    lines, length, step = [], 0, 0
    while length < size:
        step += 1
        line = (
            f"[2026-01-01 12:00:{step % 60:02}] epoch {step // 1000} step {step} loss={chance.random():.6f} "
            f"lr={chance.random() / 1000:.8f} throughput={chance.randint(900, 1100)} samples/s\n"
        ).encode()
        lines.append(line)
        length += len(line)
    return b"".join(lines)


def _cpu_by_hand(log: Path, port: int) -> float:
    began_s = time.process_time()
    with httpx.Client() as client, log.open("rb") as file:
        while part := file.read(CHUNK_BYTES):
            client.post(f"http://127.0.0.1:{port}/", content=gzip.compress(part, 1)).raise_for_status()
    return time.process_time() - began_s


def _per_mb(cpu_s: float, size: int) -> str:
    return f"{1000 * cpu_s / (size / 1e6):6.1f} ms of CPU per MB"


@contextmanager
def _sink() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "bench.support.null_server", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            _await_port(port)
            yield port
        finally:
            server.terminate()


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
