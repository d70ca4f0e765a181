"""Runs on two hosts read object stores: each host downloads what it lacks, with credentials that are nowhere
else."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.datastores.uploads.sending import begin, send
from tests.hosts.bench import Hosts
from tests.hub import eventually
from tests.stores.azurite import ACCOUNT, CONTAINER, azurite, signature
from tests.stores.s3_server import BUCKET, PUBLIC, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
DISTRIBUTION = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
FILES = {f"2024/{number:02d}.bin": os.urandom(20_000) for number in range(30)} | {
    "2024/large.bin": os.urandom(3_000_000)
}
TRAIN = """
import argparse, hashlib, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument('--data-folder')
folder = pathlib.Path(parser.parse_args().data_folder)
files = sorted(path for path in folder.rglob('*') if path.is_file()) if folder.is_dir() else [folder]
digest = hashlib.sha256(b''.join(path.read_bytes() for path in files)).hexdigest()
print('rank', os.environ['RANK'], 'reads', len(files), digest, flush=True)
"""
LATER, EARLIER = "2090-01-01T00:00:00Z", "2020-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def s3(hosts: Hosts) -> Iterator[S3Server]:
    server = S3Server(hosts.bridge.hub_address)
    server.objects[BUCKET] = dict(FILES)
    server.objects[PUBLIC] = dict(FILES)
    yield server
    server.close()


def digest(contents: list[bytes]) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()


WHOLE = digest([FILES[name] for name in sorted(FILES)])


def add_secret(hosts: Hosts, name: str, value: str) -> None:
    body = {"value": value, "scope": "workspace"}
    answer = hosts.runs.client.put(f"/api/v1/secrets/{name}/", json=body)
    assert answer.is_success, answer.text


def add_datastore(hosts: Hosts, name: str, **body: Any) -> None:
    answer = hosts.runs.client.post("/api/v1/datastores/", json={"name": name, **body})
    assert answer.status_code == httpx.codes.CREATED, answer.text


def train(hosts: Hosts, datastore: str, path: str = "2024") -> dict[str, Any]:
    return train_from(hosts, {"datastore": datastore, "path": path})


def train_from(hosts: Hosts, birds: dict[str, Any]) -> dict[str, Any]:
    run = hosts.script(
        TRAIN,
        arguments=["--data-folder", "$TRAINHUB_INPUT_BIRDS"],
        inputs={"birds": birds},
        distribution=DISTRIBUTION,
    )
    ended = hosts.runs.ended(run, 180)
    logs = [hosts.runs.log(run, f"70_driver_log_{rank}.txt").decode() for rank in range(2)]
    return ended | {"logs": logs, "number": ended["number"], "run": run}


def check_read(ended: dict[str, Any], files: int, content: str) -> None:
    assert ended["state"] == "Completed", (ended["sentence"], ended["logs"])
    assert ended["logs"] == [f"rank {rank} reads {files} {content}\n" for rank in range(2)]


def test_a_bucket_is_read_with_a_key_and_a_wrong_one_is_refused(hosts: Hosts, s3: S3Server) -> None:
    add_secret(hosts, "s3-key", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": s3.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "bucket", **place, secret="s3-key")
    check_read(train(hosts, "bucket"), len(FILES), WHOLE)
    sent = s3.sent
    check_read(train(hosts, "bucket"), len(FILES), WHOLE)
    assert s3.sent == sent, "the second run downloads nothing"

    add_secret(hosts, "wrong-key", "not-the-secret-part-of-it")
    add_datastore(hosts, "wrong", **place, secret="wrong-key")
    ended = train(hosts, "wrong")
    assert ended["state"] == "Failed"
    assert "The bucket birds refuses these credentials" in ended["sentence"]
    check_nowhere(hosts, SECRET)


def test_a_container_is_read_with_a_signature_and_a_wrong_one_is_refused(
    hosts: Hosts, tmp_path: Path
) -> None:
    with azurite(tmp_path, hosts.bridge.hub_address, FILES) as endpoint:
        place = {"kind": "azure_blob", "account": ACCOUNT, "container": CONTAINER, "endpoint": endpoint}
        right, other = signature(LATER), signature(LATER, key="b3RoZXI=")
        add_secret(hosts, "sas", right)
        add_secret(hosts, "other-sas", other)
        add_secret(hosts, "old-sas", signature(EARLIER))
        for name, secret in (("container", "sas"), ("other", "other-sas"), ("old", "old-sas")):
            add_datastore(hosts, name, **place, secret=secret)
        check_read(train(hosts, "container"), len(FILES), WHOLE)
        ended = train(hosts, "other")
        assert ended["state"] == "Failed"
        assert "refuses these credentials" in ended["sentence"]
        assert "may read and list it" in ended["sentence"]
        spec = {
            "inputs": {"birds": {"datastore": "old"}},
            "source": {"type": "example", "name": "digits-single"},
        }
        answer = hosts.runs.client.post("/api/v1/runs/", json=spec | {"script": "train.py"})
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert f"the shared access signature in old-sas ended on {EARLIER}" in answer.text
        check_nowhere(hosts, right.rpartition("sig=")[2])


def test_a_file_of_a_web_server_is_read(hosts: Hosts, s3: S3Server) -> None:
    add_datastore(hosts, "web", kind="http", url=f"{s3.url}/{PUBLIC}/")
    check_read(train(hosts, "web", "2024/large.bin"), 1, digest([FILES["2024/large.bin"]]))
    ended = train(hosts, "web", "2024/missing.bin")
    assert ended["state"] == "Failed"
    assert "has no 2024/missing.bin" in ended["sentence"]


def listed(hosts: Hosts, answer: httpx.Response) -> dict[str, Any]:
    """The version of a dataset that was just ordered, once its files are listed."""
    assert answer.is_success, answer.text
    address = f"/api/v1/datasets/{answer.json()['dataset']}/versions/{answer.json()['version']}/"

    def ended() -> dict[str, Any] | None:
        version: dict[str, Any] = hosts.runs.client.get(address).json()
        return version if version["state"] != "listing" else None

    return eventually(ended, 60, "the files are listed")


def test_a_version_of_a_dataset_is_exactly_the_files_that_were_listed(hosts: Hosts, s3: S3Server) -> None:
    client, before = hosts.runs.client, dict(s3.objects[BUCKET])
    add_secret(hosts, "lister", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": s3.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "listed", **place, secret="lister")
    body = {"name": "birds", "datastore": "listed", "path": "2024"}
    first = listed(hosts, client.post("/api/v1/datasets/", json=body))
    assert (first["state"], first["files"]) == ("ready", len(FILES)), first["failure"]
    s3.objects[BUCKET]["2024/later.bin"] = b"it was not listed"
    check_read(train_from(hosts, {"dataset": "birds"}), len(FILES), WHOLE)

    s3.objects[BUCKET]["2024/01.bin"] = b"another content"
    # What the nodes have is still that of the version.
    check_read(train_from(hosts, {"dataset": "birds", "version": 1}), len(FILES), WHOLE)
    second = listed(hosts, client.post("/api/v1/datasets/birds/refresh/"))
    changes = client.get("/api/v1/datasets/birds/versions/2/differences/").json()
    named = {
        kind: [file["path"] for file in changes[kind]["first"]] for kind in ("added", "removed", "changed")
    }
    assert named == {"added": ["later.bin"], "removed": [], "changed": ["01.bin"]}
    now = {name: content for name, content in s3.objects[BUCKET].items() if name.startswith("2024/")}
    check_read(
        train_from(hosts, {"dataset": "birds"}), second["files"], digest([now[name] for name in sorted(now)])
    )

    s3.objects[BUCKET]["2024/02.bin"] = b"a third content"
    third = listed(hosts, client.post("/api/v1/datasets/birds/refresh/"))
    s3.objects[BUCKET]["2024/02.bin"] = before["2024/02.bin"] + b"changed after it was listed"
    ended = train_from(hosts, {"dataset": "birds", "version": third["version"]})
    assert ended["state"] == "Failed"
    assert "has another 2024/02.bin than when it was listed" in ended["sentence"]
    check_nowhere(hosts, SECRET)


def test_files_that_were_uploaded_to_the_hub_are_read(hosts: Hosts) -> None:
    add_datastore(hosts, "uploads", kind="hub")
    body = {"name": "uploaded", "datastore": "uploads"}
    hosts.runs.client.post("/api/v1/datasets/", json=body).raise_for_status()
    files = {name.removeprefix("2024/"): data for name, data in FILES.items()}
    assert send(hosts.runs.client, begin(hosts.runs.client, "uploaded"), files) == len(FILES)
    check_read(train_from(hosts, {"dataset": "uploaded"}), len(FILES), WHOLE)


def check_nowhere(hosts: Hosts, secret: str) -> None:
    """Asserts that no file of a node or of the hub, database included, contains the value."""
    folders = [*(host.folder for host in hosts.hosts), hosts.hub.data_dir]
    # -s: files come and go meanwhile.
    search = subprocess.run(
        ["grep", "-rslF", "--devices=skip", secret, *folders], capture_output=True, text=True, check=False
    )
    assert search.stdout.splitlines() == []
