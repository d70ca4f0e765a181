"""Searching the whole logs of 8 ranks on the hub, through its API: MB/s of plain text and of expressions;
beside grep."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.support.limits import Limits
from bench.support.stack import Stack, stack

SCRIPT = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
RANKS = 8
# Shares of grep's speed. grep does not ignore the colours.
MIN_PLAIN, MIN_COLORED = 0.2, 0.02
QUERIES = (
    ("plain text, in no line", {"q": "device-side assert"}, ["-aic", "device-side assert"]),
    ("plain text with its case", {"q": "CUDA error: out of", "case": 1}, ["-ac", "CUDA error: out of"]),
    ("expression", {"q": r"loss=(nan|inf)\b", "regex": 1, "case": 1}, ["-aPc", r"loss=(nan|inf)\b"]),
    (
        "expression at line starts",
        {"q": r"^Traceback .*last", "regex": 1, "case": 1},
        ["-aPc", r"^Traceback .*last"],
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=50, help="of each rank")
    size = parser.parse_args().megabytes * 1_000_000
    limits = Limits()
    with stack() as hub:
        distribution = {
            "type": "pytorch",
            "process_count": RANKS,
            "node_count": 1,
            "communication_backend": "gloo",
        }
        run = hub.submit(hub.snapshot({"main.py": SCRIPT}), "main.py", distribution=distribution)
        logs = [hub.log_file(run, f"70_driver_log_{rank}.txt") for rank in range(RANKS)]
        _await(logs)
        hub.api("POST", f"/runs/{run}/cancel/")
        hub.wait(run)
        for colored in (False, True):
            for rank, log in enumerate(logs):
                _fill(log, rank, size, colored=colored)
            total = sum(log.stat().st_size for log in logs)
            print(
                f"{RANKS} ranks, {total / 1e6:.0f} MB together, "
                f"{'every line coloured' if colored else 'plain'}:"
            )
            for name, query, grep in QUERIES:
                seconds, first_s, hits = _search(hub, run, query)
                beside = _grep(grep, logs)
                speed = (
                    f"{total / 1e6 / seconds:7.0f} MB/s, first answer {first_s * 1e3:5.0f} ms, {hits} lines"
                )
                print(f"  {name:28} {speed}; grep {total / 1e6 / beside:6.0f} MB/s")
                kind = "coloured lines" if colored else "plain lines"
                limits.at_least(
                    f"{name}, {kind}, to grep", beside / seconds, MIN_COLORED if colored else MIN_PLAIN
                )
    return limits.exit_code()


def _search(hub: Stack, run: str, query: dict[str, Any]) -> tuple[float, float, int]:
    """Seconds of all pages and of the first one, and the lines found; the best of three."""
    return min(_once(hub, run, query) for _ in range(3))


def _once(hub: Stack, run: str, query: dict[str, Any]) -> tuple[float, float, int]:
    begun, first_s, hits, cursor = time.monotonic(), 0.0, 0, ""
    while cursor is not None:
        told = hub.client.get(
            f"{hub.url}/api/v1/runs/{run}/logs/search/", params={**query, "cursor": cursor}
        ).raise_for_status()
        page = told.json()
        hits, cursor = hits + len(page["results"]), page["next"]
        first_s = first_s or time.monotonic() - begun
    return time.monotonic() - begun, first_s, hits


def _grep(words: list[str], logs: list[Path]) -> float:
    begun = time.monotonic()
    subprocess.run(["grep", *words, *logs], check=False, capture_output=True, env={"LC_ALL": "C.UTF-8"})
    return time.monotonic() - begun


def _fill(log: Path, rank: int, size: int, *, colored: bool) -> None:
    with log.open("wb") as file:
        for block in _blocks(rank, size, colored):
            file.write(block)
        file.write(b"\nTraceback (most recent call last):\n")


def _blocks(rank: int, size: int, colored: bool) -> Iterator[bytes]:
    numbers = random.Random(rank)
    green, plain = (b"\x1b[32m", b"\x1b[0m") if colored else (b"", b"")
    while size > 0:
        lines = [
            b"2026-11-20 12:%02d:01 [rank %d] step %d %sloss=%.4f%s lr=3.0e-04 tokens/s=%d gpu=%.1fGiB\n"
            % (
                numbers.randrange(60),
                rank,
                numbers.randrange(10**6),
                green,
                numbers.random(),
                plain,
                1000,
                61.5,
            )
            for _ in range(10_000)
        ]
        block = b"".join(lines)[:size]
        size -= len(block)
        yield block


def _await(logs: list[Path]) -> None:
    deadline = time.monotonic() + 60
    while not all(log.exists() and log.stat().st_size for log in logs):
        if time.monotonic() > deadline:
            raise RuntimeError("the ranks said nothing within 60 s")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
