"""Data that a node downloads before the ranks of a run start, beside `rclone copy` of the same files and a
plain loop with the same library. All from a server on this machine that makes the bytes up."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import obstore
from obstore.store import S3Store

from bench.support.limits import Limits, median
from bench.support.peak_memory import peak_mib
from tests.hub import eventually, free_port
from tests.node.data.processes import ATTEMPT, Fetch
from trainhub_launch.data.stores import S3, Store

# Files, and the bytes of each.
SMALL, LARGE = (20_000, 50_000), (4, 1_000_000_000)
ROUNDS = 3
THREADS = 16
# 1 / 0.9: at least 0.9 times the speed of the faster of the two.
MAX_RATIO = 1 / 0.9
# Files that are here already, as a part of their download, and in seconds.
MAX_KNOWN_PART = 0.25
MAX_KNOWN_S = 1.0
# What a download may need more than that of one small file.
MAX_GROWTH_MIB = 50.0
POLL_S = 0.02


@contextmanager
def object_server(count: int, size: int) -> Iterator[str]:
    port = free_port()
    argv = [sys.executable, "-m", "bench.support.object_server", str(port), str(count), str(size)]
    process = subprocess.Popen(argv)
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: _answers(url), 60, "the server does not answer")
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        urlopen(f"{url}/birds?list-type=2").close()
    except OSError:
        return False
    return True


def trainhub_download(url: str, folder: Path, path: str = "", attempt: str = ATTEMPT) -> Fetch:
    store = Store(S3, settings={"bucket": "birds", "endpoint": url})
    return Fetch(folder / "cache", store, path, attempt=attempt)


def by_trainhub(url: str, folder: Path) -> None:
    trainhub_download(url, folder).done()


def again_by_trainhub(url: str, folder: Path) -> None:
    """As another run does: the files are in the cache."""
    trainhub_download(url, folder, attempt=f"{'b2' * 16}-1").done()


def measure_memory(url: str, parent: Path, path: str = "") -> float:
    """Returns the most memory in MiB that the process of a download has held."""
    peak = 0.0
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        download = trainhub_download(url, Path(folder), path)
        while download.process.poll() is None:
            # It may have ended just now.
            with suppress(ProcessLookupError):
                peak = peak_mib(download.process.pid)
            time.sleep(POLL_S)
        download.done()
    return peak


def by_rclone(url: str, folder: Path) -> None:
    options = {
        "RCLONE_CONFIG_STORE_TYPE": "s3",
        "RCLONE_CONFIG_STORE_PROVIDER": "Other",
        "RCLONE_CONFIG_STORE_ENDPOINT": url,
        "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": "a",
        "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": "b",
        "RCLONE_CONFIG": str(folder / "none"),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    command = ["rclone", "copy", "--transfers", str(THREADS), "--checkers", str(THREADS), "store:birds"]
    subprocess.run([*command, str(folder / "copy")], env=options, check=True, stderr=subprocess.DEVNULL)


def by_library(url: str, folder: Path) -> None:
    """As its documents show: a pool of threads, each file written as it arrives."""
    client = S3Store(
        "birds",
        endpoint=url,
        region="us-east-1",
        skip_signature=True,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    (folder / "copy").mkdir()

    def fetch(key: str) -> None:
        with (folder / "copy" / key).open("wb") as file:
            for block in obstore.get(client, key).stream():
                file.write(block)

    keys = [facts["path"] for chunk in obstore.list(client, chunk_size=1000) for facts in chunk]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fetch, keys))


class Cost(NamedTuple):
    """Seconds, and those of a processor, without the server's."""

    elapsed: float
    busy: float


def measure_cost(download: Callable[[str, Path], None], url: str, folder: Path) -> Cost:
    started_at, before = time.monotonic(), sum(os.times()[:4])
    download(url, folder)
    return Cost(time.monotonic() - started_at, sum(os.times()[:4]) - before)


def measure(url: str, parent: Path, rounds: int, *, keeps: bool) -> tuple[dict[str, list[Cost]], list[float]]:
    """Returns the costs of each way to an empty folder, in turn, and the seconds of a node that has the
    files.

    `keeps`: what was downloaded stays until `parent` is deleted, because many files that were deleted make
    new ones slow on some file systems (docs/benchmarks.md, "Environments and file systems")."""
    ways = {"TrainHub": by_trainhub, "rclone": by_rclone, "plain obstore": by_library}
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    known = []
    for number in range(rounds):
        order = list(ways.items())
        for name, download in order[number % 3 :] + order[: number % 3]:
            folder = Path(tempfile.mkdtemp(dir=parent))
            try:
                # What the others have left to write is not this one's.
                os.sync()
                costs[name].append(measure_cost(download, url, folder))
                if name == "TrainHub":
                    known.append(measure_cost(again_by_trainhub, url, folder).elapsed)
            finally:
                if not keeps:
                    shutil.rmtree(folder)
    return costs, known


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; 12 GB are needed")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if shutil.which("rclone") is None:
        parser.error("rclone is not installed: apt-get install rclone")
    limits, one_file = Limits(), 0.0
    for count, size in (SMALL, LARGE):
        what = f"{count:,} files of {size / 1e6:g} MB"
        with (
            tempfile.TemporaryDirectory(dir=options.folder) as parent,
            object_server(count, size) as url,
        ):
            costs, known = measure(url, Path(parent), options.rounds, keeps=(count, size) == SMALL)
            memory = measure_memory(url, Path(parent))
            if not one_file:
                one_file = measure_memory(url, Path(parent), "000000.bin")
        seconds = {name: median([cost.elapsed for cost in values]) for name, values in costs.items()}
        for name, values in costs.items():
            busy = median([cost.busy for cost in values])
            print(
                f"{what}, {name}: median {seconds[name]:.2f} s of {len(values)}, {busy:.2f} s of a processor"
            )
        print(f"{what}, when the node has them: median {median(known):.2f} s")
        others = min(seconds["rclone"], seconds["plain obstore"])
        limits.at_most(f"{what}: TrainHub to the faster other", seconds["TrainHub"] / others, MAX_RATIO)
        limits.at_most(f"{what}: known to downloaded", median(known) / seconds["TrainHub"], MAX_KNOWN_PART)
        if (count, size) == SMALL:
            limits.at_most(f"{what}: seconds when the node has them", median(known), MAX_KNOWN_S)
        print(f"{what}: the process has held {memory:.0f} MiB, for one small file {one_file:.0f} MiB")
        limits.at_most(f"{what}: MiB more than for one", memory - one_file, MAX_GROWTH_MIB)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
