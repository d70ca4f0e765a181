"""An upload on a real hub, whose own node reads what came."""

from __future__ import annotations

import hashlib
import os

import pytest

from tests.datastores.uploads.sending import begin, send
from tests.hub import Hub
from tests.runs import log, submit, wait_for

pytestmark = pytest.mark.slow
READS = """
import hashlib, os, pathlib
folder = pathlib.Path(os.environ["TRAINHUB_INPUT_BIRDS"])
for path in sorted(path for path in folder.rglob("*") if path.is_file()):
    print(path.relative_to(folder), hashlib.sha256(path.read_bytes()).hexdigest())
"""
FILES = {f"2024/{number:03d}.jpg": os.urandom(2_000) for number in range(40)} | {
    # The same content under two names, an empty file, and a name that an address has to quote.
    "copies/a.bin": b"the same",
    "copies/b.bin": b"the same",
    "empty": b"",
    "Vögel #1 & 100%.txt": b"odd",
    # In pieces, to the hub and to the node.
    "large.bin": os.urandom(20_000_000),
}


def lines(files: dict[str, bytes]) -> list[str]:
    return sorted(f"{path} {hashlib.sha256(data).hexdigest()}" for path, data in files.items())


def test_a_run_reads_the_files_that_were_uploaded(hub: Hub) -> None:
    with hub.client() as client:
        client.post("/api/v1/datastores/", json={"name": "here", "kind": "hub"}).raise_for_status()
        body = {"name": "birds", "datastore": "here"}
        client.post("/api/v1/datasets/", json=body).raise_for_status()
        address = begin(client)
        assert send(client, address, FILES) == len(FILES)
        run = submit(hub, READS, inputs={"birds": {"dataset": "birds"}})
        wait_for(hub, run, "Completed")
        assert sorted(log(hub, run).decode().splitlines()) == lines(FILES)

        changed = {**FILES, "2024/001.jpg": os.urandom(2_000), "new.txt": b"new"}
        del changed["empty"]
        address = begin(client)
        assert send(client, address, changed, time=1_700_000_001.0) == len(changed)
        differences = client.get("/api/v1/datasets/birds/versions/2/differences/").json()
        named = {kind: [file["path"] for file in differences[kind]["first"]] for kind in ("added", "removed", "changed")}
        assert named == {"added": ["new.txt"], "removed": ["empty"], "changed": ["2024/001.jpg"]}
        run = submit(hub, READS, inputs={"birds": {"dataset": "birds", "version": 2}})
        wait_for(hub, run, "Completed")
        assert sorted(log(hub, run).decode().splitlines()) == lines(changed)
        preparation = log(hub, run, "20_prep_log.txt").decode()
        assert "files were here already" in preparation
