"""A large file of a run up and down through the SDK, beside curl with the same requests: by turns."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.client import Client
from trainhub_sdk.job.hub_calls import HubCalls

MB = 1_000_000
MIN_RATIO = 0.9
NAME = "weights.bin"


def measure_transfers(limits: Limits, mb: int, rounds: int) -> None:
    """Moves a file of `mb` MB against a hub of its own, and judges the rates."""
    with stack() as hub, tempfile.TemporaryDirectory(prefix="th-bench-sdk-") as folder:
        run = hub.submit(hub.snapshot({"train.py": "pass"}), "train.py")
        hub.wait(run)
        file = Path(folder, NAME)
        with file.open("wb") as out:
            for _ in range(mb):
                out.write(os.urandom(MB))
        ways = transfers(hub, run, file)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds + 1):  # the first fills the caches
            for name, transfer in ways.items():
                begin = time.monotonic()
                transfer()
                seconds[name].append(time.monotonic() - begin)
        subprocess.run(["cmp", file, file.with_name("sdk.bin")], check=True)
    rates = {name: mb / median(values[1:]) for name, values in seconds.items()}
    for name, rate in rates.items():
        print(f"{name:<12} {rate:7.0f} MB/s (median of {rounds})")
    for way in ("up", "down"):
        limits.at_least(f"{way} by the SDK to curl", rates[f"{way}, SDK"] / rates[f"{way}, curl"], MIN_RATIO)


def transfers(hub: Stack, run: str, file: Path) -> dict[str, Callable[[], object]]:
    """Returns what moves the file, by name, in the order of each round."""
    upload = f"{hub.url}/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path={NAME}"
    download = f"{hub.url}/get-artifact?run_uuid={run}&path={NAME}"
    curl = ["curl", "-fsS", "-H", f"Authorization: Bearer {hub.token}", "-H", "Expect:"]
    binary = ["-H", "Content-Type: application/octet-stream"]
    calls = HubCalls(ApiConnection(hub.url, hub.token))
    client = Client(hub.url, hub.token)

    def put() -> None:
        with file.open("rb") as content:
            calls.put_file(run, NAME, content, file.stat().st_size)

    def get() -> None:
        client.run(run).download(NAME, file.with_name("sdk.bin"))

    return {
        "up, curl": lambda: subprocess.run(
            [*curl, *binary, "-X", "POST", "-T", file, upload], check=True, capture_output=True
        ),
        "up, SDK": put,
        "down, curl": lambda: subprocess.run(
            [*curl, "-o", file.with_name("curl.bin"), download], check=True, capture_output=True
        ),
        "down, SDK": get,
    }
