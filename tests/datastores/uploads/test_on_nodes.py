"""An upload on a real hub, whose own node reads what came."""

from __future__ import annotations

import hashlib
import os

import pytest

from tests.datastores.uploads.sending import begin, send
from tests.hub import Hub
from tests.runs import log, submit, wait_for
from trainhub_launch.log_names import PREPARATION_LOG

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
        body = {"name": "seabirds", "datastore": "here"}
        client.post("/api/v1/datasets/", json=body).raise_for_status()
        address = begin(client, "seabirds")
        assert send(client, address, FILES) == len(FILES)
        run = submit(hub, READS, inputs={"birds": {"dataset": "seabirds"}})
        wait_for(hub, run, "Completed")
        assert sorted(log(hub, run).decode().splitlines()) == lines(FILES)

        changed = {**FILES, "2024/new.jpg": os.urandom(100)}
        del changed["empty"]
        address = begin(client, "seabirds")
        assert send(client, address, changed) == 1, "what was kept is not sent again"
        differences = client.get("/api/v1/datasets/seabirds/versions/2/differences/").json()
        kinds = ("added", "removed", "changed")
        named = {kind: [file["path"] for file in differences[kind]["first"]] for kind in kinds}
        assert named == {"added": ["2024/new.jpg"], "removed": ["empty"], "changed": []}
        run = submit(hub, READS, inputs={"birds": {"dataset": "seabirds", "version": 2}})
        wait_for(hub, run, "Completed")
        assert sorted(log(hub, run).decode().splitlines()) == lines(changed)
        preparation = log(hub, run, PREPARATION_LOG).decode()
        assert f"{len(changed)} files with 0.02 GB; 0.00 GB downloaded" in preparation
        assert f"{len(changed) - 1} files were here already" in preparation
