"""Two hosts write the checkpoints of a run into a datastore, and other attempts and runs go on from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.bench import Hosts
from tests.hosts.data.test_stores import DISTRIBUTION, LATER, add_datastore, add_secret, check_nowhere
from tests.stores.azurite import ACCOUNT, CONTAINER, azurite, signature
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
# Larger than what is sent in one request.
LARGE = 9_000_000
# Each rank saves its own part of each step; once both have, rank 0 says that it is there. Then the attempt
# fails. The next one goes on from what it finds.
TRAIN = f"""
import os, pathlib, socket, sys, time
rank, folder = os.environ['RANK'], pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'])
there = sorted(folder.glob('step-*'), key=lambda path: int(path.name[5:]))
first = 0
if there:
    parts = sorted(path.name for path in there[-1].iterdir())
    assert (there[-1] / f'part-{{rank}}.bin').read_bytes() == bytes([int(rank)]) * {LARGE}
    print('goes on from', there[-1].name, parts, flush=True)
    first = int(there[-1].name[5:])
    if len(sys.argv) > 1:
        sys.exit(0)
address = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
if rank == '0':
    other, _ = socket.create_server(address).accept()
while rank == '1':
    try:
        other = socket.create_connection(address)
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
for step in range(first + 1, first + 4):
    (folder / f'step-{{step}}').mkdir()
    (folder / f'step-{{step}}' / f'part-{{rank}}.bin').write_bytes(bytes([int(rank)]) * {LARGE})
    other.sendall(b'.')
    other.recv(1)
    if rank == '0':
        (folder / f'step-{{step}}' / '.complete').touch()
    time.sleep(3)
sys.exit(0 if there else 1)
"""
PARTS = [".complete", "part-0.bin", "part-1.bin"]


@pytest.fixture(scope="module")
def s3(hosts: Hosts) -> Iterator[S3Server]:
    server = S3Server(hosts.bridge.hub_address)
    add_secret(hosts, "checkpoint-writer", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "checkpoints-bucket", **place, path="all", secret="checkpoint-writer")
    yield server
    server.close()


def train(hosts: Hosts, **spec: Any) -> tuple[str, dict[str, Any], list[str]]:
    """Returns the run, how it ended, and the logs of its ranks."""
    run = hosts.script(TRAIN, distribution=DISTRIBUTION, **spec)
    ended = hosts.runs.ended(run, 240)
    logs = [hosts.runs.log(run, f"70_driver_log_{rank}.txt").decode() for rank in range(2)]
    return run, ended, logs


def complete_checkpoints(hosts: Hosts, run: str) -> list[dict[str, Any]]:
    rows = hosts.runs.get(f"/runs/{run}/checkpoints/")
    return [row for row in rows if row["state"] == "complete"]


def kept(hosts: Hosts, run: str) -> list[tuple[str, str]]:
    return [(row["name"], row["place"]) for row in complete_checkpoints(hosts, run)]


def below(server: S3Server, prefix: str) -> set[str]:
    """The names of objects, without the part of each that tells one version of a checkpoint from the next."""
    keys = (key.removeprefix(prefix) for key in server.objects[BUCKET] if key.startswith(prefix))
    return {"/".join([number, *rest]) for number, _, *rest in (key.split("/") for key in keys)}


def test_a_retry_and_another_run_go_on_from_the_bucket(hosts: Hosts, s3: S3Server) -> None:
    checkpoint = {"datastore": "checkpoints-bucket", "datastore_path": "birds", "keep": 2}
    run, ended, logs = train(hosts, checkpoint=checkpoint, limits={"retries": 1})
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert [f"goes on from step-3 {PARTS}" in log for log in logs] == [True, True]
    place = f"all/birds/{run}/checkpoints"
    assert kept(hosts, run) == [(name, f"s3://{BUCKET}/{place}") for name in ("step-5", "step-6")]
    # What is not kept any more is not there any more, but for what the later ones have, too: each part is the
    # same in all of them.
    # A slow machine may have torn one: the next one then has a later number.
    numbers = [row["number"] for row in complete_checkpoints(hosts, run)]
    there = below(s3, f"{place}/")
    marks = {f"{numbers[0]}/step-5/.complete", f"{numbers[1]}/step-6/.complete"}
    assert {name for name in there if name.endswith(".complete")} == marks
    assert sorted(name.rpartition("/")[2] for name in there - marks) == PARTS[1:]
    # It says nothing about a datastore: its checkpoints go where those of its origin went.
    resumed, ended, logs = train(hosts, arguments=["--end"], checkpoint={"resume_from": run})
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert [f"goes on from step-6 {PARTS}" in log for log in logs] == [True, True]
    assert kept(hosts, resumed) == [("step-6", f"s3://{BUCKET}/{place}")]
    check_nowhere(hosts, SECRET)


def test_what_was_changed_in_the_bucket_is_not_used(hosts: Hosts, s3: S3Server) -> None:
    checkpoint = {"datastore": "checkpoints-bucket", "keep": 1}
    run, _, _ = train(hosts, checkpoint=checkpoint)
    assert len(complete_checkpoints(hosts, run)) == 1
    place = f"all/{run}/checkpoints/"
    (key,) = [key for key in s3.objects[BUCKET] if key.startswith(place) and key.endswith("part-1.bin")]
    s3.objects[BUCKET][key] = bytes(LARGE)
    _, ended, _ = train(hosts, arguments=["--end"], checkpoint={"resume_from": run})
    assert ended["state"] == "Failed"
    assert "The checkpoint to go on from could not be read" in ended["sentence"]
    assert "is not what was saved there" in ended["sentence"]


@pytest.mark.long
def test_a_container_keeps_what_its_signature_may_not_delete(hosts: Hosts, tmp_path: Path) -> None:
    with azurite(tmp_path, hosts.bridge.hub_address, {}) as endpoint:
        place = {"kind": "azure_blob", "account": ACCOUNT, "container": CONTAINER, "endpoint": endpoint}
        for name, rights in (("deleter", "rcwdl"), ("keeper", "rcwl")):
            add_secret(hosts, f"sas-{name}", signature(LATER, rights=rights))
            add_datastore(hosts, f"checkpoints-{name}", **place, secret=f"sas-{name}")
        for name, is_warned in (("deleter", False), ("keeper", True)):
            checkpoint = {"datastore": f"checkpoints-{name}", "keep": 1}
            run, _, _ = train(hosts, checkpoint=checkpoint)
            assert kept(hosts, run) == [("step-3", f"{ACCOUNT}/{CONTAINER}/{run}/checkpoints")]
            detail = hosts.runs.client.get(f"/api/v1/runs/{run}/").json()
            warnings = [warning for attempt in detail["attempts"] for warning in attempt["warnings"]]
            said = "Checkpoints that are not kept any more stay in the datastore: The container"
            assert any(warning.startswith(said) for warning in warnings) == is_warned, warnings
