"""Two hosts write the outputs of a run into a datastore instead of the hub."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hosts.bench import Hosts
from tests.hosts.data.test_stores import DISTRIBUTION, LATER, add_datastore, add_secret, check_nowhere
from tests.hub import eventually
from tests.stores.azurite import ACCOUNT, CONTAINER, azurite, signature
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
# Larger than what is sent in one request.
LARGE = 20_000_000
TRAIN = f"""
import os, pathlib
rank, outputs = os.environ['RANK'], pathlib.Path('outputs')
(outputs / 'same.txt').write_text('of all')
(outputs / 'rank.txt').write_text('of ' + rank)
(outputs / f'deep/er/{{rank}}').mkdir(parents=True)
(outputs / f'deep/er/{{rank}}/weights.bin').write_bytes(bytes([int(rank)]) * {LARGE})
(outputs / 'outside').symlink_to('/etc/hostname')
pathlib.Path('logs/extra.log').write_text('a log')
"""


@cache
def expected() -> dict[str, bytes]:
    return {
        "same.txt": b"of all",
        "rank.txt": b"of 0",
        "node_1/rank.txt": b"of 1",
        "deep/er/0/weights.bin": bytes([0]) * LARGE,
        "deep/er/1/weights.bin": bytes([1]) * LARGE,
    }


@pytest.fixture(scope="module")
def s3(hosts: Hosts) -> Iterator[S3Server]:
    server = S3Server(hosts.bridge.hub_address)
    add_secret(hosts, "writer", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "outputs-bucket", **place, path="all", secret="writer")
    yield server
    server.close()


def train(hosts: Hosts, datastore: str, text: str = TRAIN, **spec: Any) -> dict[str, Any]:
    outputs = {"datastore": datastore, "path": "birds"}
    run = hosts.script(text, outputs=outputs, **spec)
    ended = hosts.runs.ended(run, 180)
    assert ended["state"] == "Completed", ended["sentence"]
    return ended | {"run": run}


def listed(hosts: Hosts, run: str) -> dict[str, tuple[int, str]]:
    """The outputs that the hub lists: path -> size, SHA-256."""
    answer = hosts.runs.client.get(f"/api/v1/runs/{run}/outputs/")
    assert answer.is_success, answer.text
    return {item["path"]: (item["size_bytes"], item["sha256"]) for item in answer.json()["outputs"]}


def warnings_of(hosts: Hosts, run: str) -> list[str]:
    detail = hosts.runs.client.get(f"/api/v1/runs/{run}/").json()
    return [str(warning) for attempt in detail["attempts"] for warning in attempt["warnings"]]


def as_listed(files: dict[str, bytes]) -> dict[str, tuple[int, str]]:
    return {path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in files.items()}


def below(server: S3Server, prefix: str) -> dict[str, bytes]:
    objects = server.objects[BUCKET].items()
    return {key.removeprefix(prefix): content for key, content in objects if key.startswith(prefix)}


def test_outputs_of_two_nodes_are_in_the_bucket(hosts: Hosts, s3: S3Server) -> None:
    ended = train(hosts, "outputs-bucket", distribution=DISTRIBUTION)
    assert below(s3, f"all/birds/{ended['run']}/attempt_1/") == {
        f"node_{rank}/{name}": content
        for rank in (0, 1)
        for name, content in {
            "same.txt": b"of all",
            "rank.txt": f"of {rank}".encode(),
            f"deep/er/{rank}/weights.bin": bytes([rank]) * LARGE,
        }.items()
    }
    files = listed(hosts, ended["run"])
    assert {path: files[path] for path in expected()} == as_listed(expected())
    # Of outputs/ nothing else; logs stay on the hub.
    assert not [path for path in files if path not in expected() and not path.startswith("logs/")]
    assert "logs/extra.log" in files
    (warning,) = warnings_of(hosts, ended["run"])
    assert "outside is not among the outputs" in warning
    check_nowhere(hosts, SECRET)


SMALL = "import pathlib; pathlib.Path('outputs/a/b').mkdir(parents=True)\n" + "".join(
    f"pathlib.Path('outputs/a/b/{number}.txt').write_text('{number}')\n" for number in range(20)
)
CHECK = """
import hashlib, os, pathlib
root = pathlib.Path(os.environ['TRAINHUB_INPUT_BIRDS'])
for path in sorted(root.rglob('*')):
    if path.is_file():
        print(path.relative_to(root), hashlib.sha256(path.read_bytes()).hexdigest())
"""
SMALL_FILES = {f"a/b/{number}.txt": str(number).encode() for number in range(20)}


def test_outputs_are_in_a_container_and_a_signature_that_may_not_write_is_refused(
    hosts: Hosts, tmp_path: Path
) -> None:
    with azurite(tmp_path, hosts.bridge.hub_address, {}) as endpoint:
        place = {"kind": "azure_blob", "account": ACCOUNT, "container": CONTAINER, "endpoint": endpoint}
        add_secret(hosts, "sas-writer", signature(LATER, rights="rcwl"))
        add_secret(hosts, "sas-reader", signature(LATER))
        add_datastore(hosts, "outputs-container", **place, secret="sas-writer")
        add_datastore(hosts, "outputs-readonly", **place, secret="sas-reader")
        ended = train(
            hosts, "outputs-container", SMALL + f"pathlib.Path('outputs/large').write_bytes(bytes({LARGE}))"
        )
        files = listed(hosts, ended["run"])
        assert files == as_listed(SMALL_FILES | {"large": bytes(LARGE)})
        # What a later run reads there is what the hub has recorded.
        read = {"birds": {"datastore": "outputs-container", "path": f"birds/{ended['run']}/attempt_1"}}
        reader = hosts.script(CHECK, inputs=read)
        assert hosts.runs.ended(reader, 120)["state"] == "Completed"
        lines = hosts.runs.log(reader, "70_driver_log.txt").decode().splitlines()
        assert sorted(lines) == sorted(f"{path} {sha256}" for path, (_, sha256) in files.items())
        spec = {"source": {"type": "example", "name": "digits-single"}, "script": "train.py"}
        answer = hosts.runs.client.post(
            "/api/v1/runs/", json=spec | {"outputs": {"datastore": "outputs-readonly"}}
        )
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert "may not write; make a new one with the rights to read, list, create and write" in answer.text


def test_what_a_store_refuses_is_on_the_hub(hosts: Hosts, s3: S3Server) -> None:
    add_secret(hosts, "wrong-writer", "not-the-secret-part-of-it")
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": s3.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "outputs-wrong", **place, secret="wrong-writer")
    ended = train(hosts, "outputs-wrong", SMALL)
    assert listed(hosts, ended["run"]) == as_listed(SMALL_FILES)
    (warning,) = warnings_of(hosts, ended["run"])
    assert warning.startswith("Outputs could not be written to the datastore, and are on the hub instead: ")
    assert "does not let these credentials write" in warning
    assert not below(s3, f"birds/{ended['run']}")


def test_outputs_are_in_a_folder(hosts: Hosts) -> None:
    """Each host has a folder of its own here; on a file server they would be one."""
    for host in hosts.hosts:
        host.run("mkdir", "-p", "/tmp/results")
    add_datastore(hosts, "outputs-folder", kind="folder", path="/tmp/results")
    add_datastore(hosts, "outputs-absent", kind="folder", path="/tmp/not-mounted")
    ended = train(hosts, "outputs-folder", SMALL)
    assert listed(hosts, ended["run"]) == as_listed(SMALL_FILES)
    (member,) = hosts.runs.members(ended["run"])
    (host,) = (host for host in hosts.hosts if host.name == member["node"])
    folder = f"/tmp/results/birds/{ended['run']}/attempt_1"
    found = host.run("find", folder, "-type", "f", "-printf", "%P %s\\n").stdout.splitlines()
    assert sorted(found) == sorted(f"{path} {len(content)}" for path, content in SMALL_FILES.items())
    ended = train(hosts, "outputs-absent", SMALL)
    assert listed(hosts, ended["run"]) == as_listed(SMALL_FILES)
    (warning,) = warnings_of(hosts, ended["run"])
    assert "/tmp/not-mounted is not there: mount its file system on that node" in warning


def test_an_agent_that_is_killed_goes_on_writing(hosts: Hosts, s3: S3Server) -> None:
    s3.takes.clear()
    outputs = {"datastore": "outputs-bucket", "path": "birds"}
    run = hosts.script(SMALL, outputs=outputs)
    try:
        eventually(lambda: s3.waiting, 60, "the node writes")
        (member,) = hosts.runs.members(run)
        (host,) = (host for host in hosts.hosts if host.name == member["node"])
        host.kill_agent()
    finally:
        s3.takes.set()
    host.start_agent()
    ended = hosts.runs.ended(run, 120)
    assert ended["state"] == "Completed", ended["sentence"]
    assert listed(hosts, run) == as_listed(SMALL_FILES)
    assert below(s3, f"all/birds/{run}/attempt_1/") == SMALL_FILES
    assert warnings_of(hosts, run) == []


def test_they_are_in_the_bucket_while_the_run_runs(hosts: Hosts, s3: S3Server) -> None:
    run = hosts.script(
        SMALL + "import os, time\nwhile not os.path.exists('next'): time.sleep(0.1)\n"
        "os.remove('outputs/a/b/0.txt'); time.sleep(600)",
        outputs={"datastore": "outputs-bucket"},
    )
    prefix = f"all/{run}/attempt_1/"
    eventually(lambda: below(s3, prefix) == SMALL_FILES, 90, "what is left alone is in the bucket")
    eventually(lambda: listed(hosts, run) == as_listed(SMALL_FILES), 30, "it is listed")
    assert hosts.runs.detail(run)["state"] == "Running"
    (hosts.file_on_host(run, "70_driver_log.txt").parents[1] / "work" / "next").touch()
    left = {name: content for name, content in SMALL_FILES.items() if name != "a/b/0.txt"}
    eventually(lambda: below(s3, prefix) == left, 60, "what was removed is not there any more")
    eventually(lambda: listed(hosts, run) == as_listed(left), 30, "nor is it listed")
    hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
    assert hosts.runs.ended(run, 60)["state"] == "Canceled"
    assert below(s3, prefix) == left


def test_a_run_that_is_canceled_keeps_its_outputs(hosts: Hosts, s3: S3Server) -> None:
    run = hosts.script(
        SMALL + "print('written', flush=True); import time; time.sleep(600)",
        outputs={"datastore": "outputs-bucket"},
    )
    eventually(lambda: b"written" in hosts.runs.log(run, "70_driver_log.txt"), 60, "it has written")
    hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
    assert hosts.runs.ended(run, 60)["state"] == "Canceled"
    eventually(lambda: listed(hosts, run) == as_listed(SMALL_FILES), 60, "its outputs are listed")
    assert below(s3, f"all/{run}/attempt_1/") == SMALL_FILES
