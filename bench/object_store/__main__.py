"""Files of an artifact up and down through a hub that keeps them in an S3-compatible store, beside the
store's library alone, by turns.

Up ends when every object is complete in the store; down begins without copies on the hub's disk. The store is
that of the tests, in a process of its own, which gives and takes `--rate` MB/s in all, so that it is waited
for, and not the cores of this machine, which all processes share (0: as fast as it can).

python -m bench.object_store [--files 12] [--mb 24] [--rounds 3] [--rate 25]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import obstore
from obstore.store import S3Store

from bench.support.limits import Limits
from bench.support.stack import Stack, free_port, own_folder, stack
from tests.stores.s3_process import S3Process
from tests.stores.s3_server import BUCKET
from tests.stores.s3_signatures import KEY_ID, SECRET

MB = 1_000_000
LEAST = 0.8
SENDERS = 4
PIECE_BYTES = MB
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
REDIRECTED = {"X-TrainHub-Redirect": "store"}


@dataclass
class Times:
    """Seconds of each round."""

    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Hub:
    running: Stack
    artifacts: str
    store: S3Store

    def send(self, files: Sequence[Path]) -> None:
        """Returns once the store has all of them."""
        before = _object_count(self.store, "hub")

        def put(file: Path) -> None:
            with file.open("rb") as content:
                answer = self.running.client.put(f"{self.artifacts}/{file.name}", content=_pieces(content))
                answer.raise_for_status()

        _at_once(put, files)
        while _object_count(self.store, "hub") < before + len(files):
            time.sleep(0.02)

    def fetch(self, files: Sequence[Path], folder: Path, headers: dict[str, str]) -> None:
        for copy in own_folder(self.running.data).glob("blobs/??/*"):
            copy.unlink()

        def get(file: Path) -> None:
            url = f"{self.artifacts}/{file.name}"
            with self.running.client.stream("GET", url, headers=headers) as answer:
                if answer.status_code == httpx.codes.TEMPORARY_REDIRECT:
                    with httpx.stream("GET", answer.headers["Location"]) as direct:
                        _write(direct, folder / file.name)
                    return
                answer.raise_for_status()
                _write(answer, folder / file.name)

        _at_once(get, files)


@contextmanager
def hub(server: S3Process) -> Iterator[Hub]:
    access = {
        "BLOB_STORE": f"s3://{BUCKET}/hub",
        "BLOB_STORE_ENDPOINT": server.url,
        "BLOB_STORE_KEY_ID": KEY_ID,
        "BLOB_STORE_SECRET": SECRET,
        "BLOB_STORE_PRESIGN": "1",
    }
    with stack(**access) as running:
        api = f"{running.url}/api/2.0/mlflow"
        experiment = running.client.post(f"{api}/experiments/create", json={"name": "bench"}).json()
        body = {"experiment_id": experiment["experiment_id"], "start_time": int(time.time() * 1000)}
        run = running.client.post(f"{api}/runs/create", json=body).json()["run"]["info"]
        root = str(run["artifact_uri"]).partition(":/")[2].strip("/")
        yield Hub(running, f"{running.url}{ARTIFACTS}/{root}", _library(server))


def send_alone(store: S3Store, files: Sequence[Path]) -> None:
    _at_once(lambda file: obstore.put(store, f"alone/{file.name}", file), files)


def fetch_alone(store: S3Store, files: Sequence[Path], folder: Path) -> None:
    def get(file: Path) -> None:
        with (folder / file.name).open("wb") as out:
            for piece in obstore.get(store, f"alone/{file.name}").stream(min_chunk_size=PIECE_BYTES):
                out.write(piece)

    _at_once(get, files)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--mb", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=25, help="MB/s of the store; 0: no limit")
    options = parser.parse_args()
    rate = options.rate * MB or 10**12
    server = S3Process("127.0.0.1", free_port(), 0, 0, rate=rate)
    with tempfile.TemporaryDirectory(prefix="th-bench-s3-") as folder:
        try:
            with hub(server) as ours:
                hub_times, direct_times, alone = _measure(ours, server, Path(folder), options)
        finally:
            server.kill()
    total = options.files * options.mb
    limits = Limits()
    _show("library alone", total, alone)
    _show("hub", total, hub_times)
    _show("hub, presigned", total, direct_times)
    median = statistics.median
    limits.at_least("the rate of uploads", median(alone.up) / median(hub_times.up), LEAST)
    limits.at_least("the rate of downloads", median(alone.down) / median(hub_times.down), LEAST)
    limits.at_least("that of presigned ones", median(alone.down) / median(direct_times.down), LEAST)
    return limits.exit_code()


def _measure(ours: Hub, server: S3Process, folder: Path, options: Any) -> tuple[Times, Times, Times]:
    hub_times, direct_times, alone = Times(), Times(), Times()
    store = _library(server)
    for number in range(options.rounds):
        # Others each time: the hub does not upload the same bytes twice.
        files = [_random_file(folder / f"{number}-{index}.bin", options.mb) for index in range(options.files)]
        arrived = folder / f"arrived-{number}"
        arrived.mkdir()
        alone.up.append(_seconds(send_alone, store, files))
        hub_times.up.append(_seconds(ours.send, files))
        alone.down.append(_seconds(fetch_alone, store, files, arrived))
        _compare(files, arrived)
        hub_times.down.append(_seconds(ours.fetch, files, arrived, {}))
        _compare(files, arrived)
        direct_times.down.append(_seconds(ours.fetch, files, arrived, REDIRECTED))
        _compare(files, arrived)
        for file in files:
            file.unlink()
    return hub_times, direct_times, alone


def _seconds(work: Callable[..., None], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def _compare(files: Sequence[Path], folder: Path) -> None:
    for file in files:
        arrived = folder / file.name
        if arrived.read_bytes() != file.read_bytes():
            raise RuntimeError(f"{file.name} arrived with other bytes")
        arrived.unlink()


def _show(name: str, total: int, times: Times) -> None:
    for word, seconds in (("up", times.up), ("down", times.down)):
        if seconds:
            rates = ", ".join(f"{total / second:.0f}" for second in seconds)
            print(f"{name:<15} {word:<5} {total / statistics.median(seconds):6.0f} MB/s (rounds: {rates})")


def _at_once(work: Callable[[Path], object], files: Sequence[Path]) -> None:
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(work, files))


def _library(server: S3Process) -> S3Store:
    return S3Store(
        BUCKET,
        endpoint=server.url,
        region="us-east-1",
        access_key_id=KEY_ID,
        secret_access_key=SECRET,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": "10 minutes"},
    )


def _object_count(store: S3Store, prefix: str) -> int:
    return sum(len(chunk) for chunk in obstore.list(store, prefix))


def _random_file(path: Path, mb: int) -> Path:
    with path.open("wb") as out:
        for _ in range(mb):
            out.write(os.urandom(MB))
    return path


def _pieces(content: Any) -> Iterator[bytes]:
    while piece := content.read(PIECE_BYTES):
        yield piece


def _write(answer: httpx.Response, to: Path) -> None:
    with to.open("wb") as out:
        for piece in answer.iter_raw(PIECE_BYTES):
            out.write(piece)


if __name__ == "__main__":
    sys.exit(main())
