"""What the ranks of the measured runs do. It is the script of these runs, so it imports nothing of TrainHub,
and tells what it has measured as lines of JSON."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

BLOCK = os.urandom(1 << 20)
# One step of training: about a millisecond in which the rank keeps its core busy.
WEIGHTS = np.random.default_rng(0).random((256, 256), np.float32)
QUIET, RCLONE, HUB = "quiet", "rclone", "hub"
CHECKPOINTS = Path(os.environ.get("TRAINHUB_CHECKPOINT_DIR", "checkpoints"))


def step() -> None:
    _ = WEIGHTS @ WEIGHTS


def save(folder: Path, files: int, size: int) -> None:
    """Writes files that no earlier checkpoint had: the hub stores the same content once."""
    folder.mkdir(parents=True)
    for number in range(files):
        with (folder / f"shard-{number}.bin").open("wb") as file:
            file.write(os.urandom(64))
            for start in range(64, size, len(BLOCK)):
                file.write(BLOCK[: min(len(BLOCK), size - start)])


def begin_upload(way: str, folder: Path) -> subprocess.Popen[bytes] | None:
    """After this the rank goes on at once. TrainHub's agent sees the rename by itself."""
    if way == HUB:
        folder.rename(CHECKPOINTS / folder.name)
    if way != RCLONE:
        return None
    return subprocess.Popen(["rclone", "copy", folder, f"store:{folder.name}"], stdin=subprocess.DEVNULL)


def train(interval: float, copy: subprocess.Popen[bytes] | None) -> dict[str, float | None]:
    """Counts the steps of so many seconds."""
    steps, longest, copied = 0, 0.0, None
    started = before = time.monotonic()
    while before - started < interval:
        step()
        steps += 1
        now = time.monotonic()
        longest, before = max(longest, now - before), now
        if copy is not None and copied is None and copy.poll() is not None:
            copied = now - started
    if copy is not None and copied is None:
        copy.wait()
        copied = time.monotonic() - started
    if copy is not None and copy.returncode != 0:
        raise RuntimeError(f"rclone ended with {copy.returncode}")
    return {"steps": steps, "seconds": before - started, "longest_step": longest, "copied": copied}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", nargs="*", default=[])
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--interval", type=float, default=0)
    options = parser.parse_args()
    there = {str(path): path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file()}
    step()
    print(json.dumps({"first_step_at": time.time(), "there": sorted(there.values())}), flush=True)
    for number, way in enumerate(() if there else options.windows):
        for old in (*Path("saved").glob("*"), *CHECKPOINTS.glob("*")):
            shutil.rmtree(old)
        folder = Path("saved") / f"{way}-{number}"
        started = time.monotonic()
        save(folder, options.files, options.size)
        saved = time.monotonic() - started
        began_at = time.time()
        counted = train(options.interval, begin_upload(way, folder))
        told = {"way": way, "name": folder.name, "save": saved, "began_at": began_at, **counted}
        print(json.dumps(told), flush=True)
    # Until the run is canceled, or its node is lost.
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
