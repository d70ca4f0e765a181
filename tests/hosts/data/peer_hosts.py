"""Hosts with a cache of their own each, and a store on another machine with a slow line."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.hosts.bench import CLUSTER, Host, Hosts
from tests.hub import PROJECT, eventually

TRAIN = """
import argparse, hashlib, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument('--data-folder')
folder = pathlib.Path(parser.parse_args().data_folder)
digest = hashlib.sha256()
for path in sorted(folder.iterdir()):
    with path.open('rb') as file:
        while block := file.read(1 << 20):
            digest.update(block)
print('rank', os.environ.get('RANK', '0'), 'reads', digest.hexdigest(), flush=True)
"""
BLOCK = bytes(range(256)) * 4096
DOWNLOADED = re.compile(r"downloaded in ([\d.,]+) s")


class PeerHost(Host):
    cache = "/tmp/cache"


class StoredFiles(NamedTuple):
    """What a server of bench.support.object_server has."""

    port: int
    number: int
    size: int

    @property
    def digest(self) -> str:
        result = hashlib.sha256()
        for place in range(self.number):
            key = f"{place:06d}.bin".encode()
            first = (key + BLOCK[len(key) :])[: self.size]
            result.update(first)
            for start in range(len(first), self.size, len(BLOCK)):
                result.update(BLOCK[: min(len(BLOCK), self.size - start)])
        return result.hexdigest()


class Trained(NamedTuple):
    """A run that has ended. `seconds`: the longest download of a node; `sent`: bytes that left the store;
    `preparation`: the logs of that."""

    detail: dict[str, Any]
    logs: list[str]
    seconds: float
    sent: int
    preparation: list[str]


class PeerHosts(Hosts):
    """The last machine is the store; the others are nodes."""

    host_type = PeerHost

    def __init__(self, folder: Path, python: str, nodes: int, mbit: int) -> None:
        super().__init__(folder, python, nodes + 1)
        self.store = self.hosts.pop()
        self._mbit = mbit

    def start_hosts(self) -> None:
        self.store.boot()
        # What leaves the store is limited; what it gets need not be.
        limit = ("rate", f"{self._mbit}mbit", "burst", "256kb", "latency", "50ms")
        self.store.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *limit)
        super().start_hosts()

    def stop(self) -> None:
        super().stop()
        self.store.stop()

    def add_dataset(self, name: str, files: StoredFiles) -> None:
        address = self.store.address
        argv = [sys.executable, "-m", "bench.support.object_server", str(files.port), str(files.number)]
        log = self.store.folder / "store.log"
        self.store.spawn(log, *argv, str(files.size), address, PYTHONPATH=str(PROJECT))
        endpoint = f"http://{address}:{files.port}"
        eventually(lambda: _answers(endpoint), 60, "the store does not answer")
        datastore = {"name": name, "kind": "s3", "bucket": "birds", "endpoint": endpoint, "sign_in": "none"}
        for path, body in (("datastores", datastore), ("datasets", {"name": name, "datastore": name})):
            answer = self.runs.client.post(f"/api/v1/{path}/", json=body)
            assert answer.is_success, answer.text
        address = f"/datasets/{name}/versions/1/"
        eventually(lambda: self.runs.get(address)["state"] == "ready", 60, f"{name} is not listed")

    def train(self, dataset: str, nodes: int, meanwhile: Callable[[], None] = lambda: None) -> Trained:
        """A run that reads everything, with one rank on each of so many nodes. `meanwhile` is called once it
        is submitted."""
        before = self.sent()
        gang = {
            "type": "pytorch",
            "communication_backend": "gloo",
            "process_count": nodes,
            "node_count": nodes,
        }
        spec: dict[str, Any] = {"distribution": gang} if nodes > 1 else {}
        run = self.runs.script(
            TRAIN,
            arguments=["--data-folder", "$TRAINHUB_INPUT_BIRDS"],
            inputs={"birds": {"dataset": dataset}},
            resources={"cluster": CLUSTER},
            **spec,
        )
        meanwhile()
        ended = self.runs.ended(run, 600)
        names = [f"70_driver_log_{rank}.txt" for rank in range(nodes)] if nodes > 1 else ["70_driver_log.txt"]
        logs = [self.runs.log(run, name).decode() for name in names]
        prefixes = ["", *(f"node_{rank}/" for rank in range(1, nodes))]
        prepared = [self.runs.log(run, f"{prefix}55_preparation_log.txt").decode() for prefix in prefixes]
        times = [float(time.replace(",", "")) for text in prepared for time in DOWNLOADED.findall(text)]
        return Trained(ended, logs, max(times, default=0.0), self.sent() - before, prepared)

    def sent(self) -> int:
        """The bytes that have left the store, with the headers of all packets."""
        # Counters of a device are some packets behind.
        time.sleep(0.5)
        (device,) = json.loads(self.store.run("ip", "-s", "-j", "link", "show", "eth0").stdout)
        return int(device["stats64"]["tx"]["bytes"])


def _answers(endpoint: str) -> bool:
    try:
        return httpx.get(f"{endpoint}/birds?list-type=2", timeout=5).is_success
    except httpx.HTTPError:
        return False
