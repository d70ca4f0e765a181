"""What runs have besides processes, on nodes of a real Slurm where nothing of TrainHub was before:
environments, data, outputs and checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.package_index import PackageIndex
from tests.environments.test_journey import described
from tests.hub import eventually
from tests.journeys.runs import Runs, sha256
from tests.node.accounts import ADA
from tests.slurm.configuration import MEMORY_MB
from tests.slurm.hub import PATIENCE_S, SlurmHub
from tests.slurm.people import Person
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_launch.log_names import ENVIRONMENT_LOG

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
TWO_NODES = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
LOGS = ("70_driver_log_0.txt", "70_driver_log_1.txt")
# Slurm's own default is too small for an installation.
MEMORY = {"memory": 1_000_000_000}
FILES = {f"birds/{number:02d}.bin": bytes([number]) * 20_000 for number in range(20)}
DIGEST = hashlib.sha256(b"".join(FILES[name] for name in sorted(FILES))).hexdigest()
USE = "import sys, tinylib\nprint(tinylib.VERSION, sys.prefix, flush=True)\n"
READ = """
import hashlib, os, pathlib
files = sorted(path for path in pathlib.Path(os.environ['TRAINHUB_INPUT_BIRDS']).rglob('*') if path.is_file())
print(len(files), hashlib.sha256(b''.join(path.read_bytes() for path in files)).hexdigest(), flush=True)
pathlib.Path('outputs', 'rank-' + os.environ['RANK']).write_text('of rank ' + os.environ['RANK'])
"""
STREAM = """
import hashlib, json, os, urllib.request
digest = hashlib.sha256()
with open(os.environ['TRAINHUB_INPUT_BIRDS_FILES']) as lines:
    files = [json.loads(line) for line in lines]
for file in sorted(files, key=lambda file: file['path']):
    request = urllib.request.Request(file['url'], headers={'If-Match': file['etag']})
    digest.update(urllib.request.urlopen(request).read())
print(len(files), digest.hexdigest(), flush=True)
"""
# Saves once, and ends when there is something to go on from.
SAVE = """
import os, pathlib, time
folder = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'])
if (folder / 'last.pt').exists():
    print('goes on from', (folder / 'last.pt').read_text(), flush=True)
else:
    (folder / '.last.pt').write_text('step 1')
    (folder / '.last.pt').rename(folder / 'last.pt')
    print('here', flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: SlurmHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


@pytest.fixture(scope="module")
def bucket(slurm_hub: SlurmHub) -> Iterator[S3Server]:
    """A store with the datastore `bucket` and the dataset `birds`, which the nodes reach."""
    server = S3Server(slurm_hub.slurm.hub_address)
    server.objects[BUCKET] = dict(FILES)
    slurm_hub.send("PUT", "/api/v1/secrets/key/", {"value": SECRET, "scope": "workspace"})
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID, "secret": "key"}
    slurm_hub.send("POST", "/api/v1/datastores/", {"name": "bucket", **place})
    slurm_hub.send("POST", "/api/v1/datasets/", {"name": "birds", "datastore": "bucket", "path": "birds"})
    version = "/datasets/birds/versions/1/"
    eventually(
        lambda: slurm_hub.runs.get(version)["state"] == "ready",
        PATIENCE_S,
        "the hub has the list of its files",
    )
    yield server
    server.close()


def test_an_environment_is_made_on_both_nodes(slurm_hub: SlurmHub, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    # The hub gets the packages from there once a node asks for them.
    with PackageIndex(tmp_path / "index").serving() as index:
        index.add("tinylib", "1.0")
        requirements = [f"--index-url {index.url}", "tinylib"]
        body = {"name": "own", "kind": "pip", "requirements": requirements, "python": "3.11"}
        version = described(slurm_hub.hub, body)
        assert version["state"] == "locked", version["failure"]
        run = slurm_hub.script(
            USE, environment={"name": "own"}, distribution=TWO_NODES, resources={**MEMORY, "cpus": 1}
        )
        slurm_hub.completes(run)
    assert [slurm_hub.runs.log(run, name).split()[0] for name in LOGS] == [b"1.0", b"1.0"]
    built = [name for name in slurm_hub.runs.logs(run) if ENVIRONMENT_LOG.partition(".")[0] in name]
    assert len(built) == 2


def test_data_comes_from_a_store_and_outputs_go_there(slurm_hub: SlurmHub, bucket: S3Server) -> None:
    run = slurm_hub.script(
        READ,
        inputs={"birds": {"dataset": "birds"}},
        outputs={"datastore": "bucket", "path": "results"},
        distribution=TWO_NODES,
    )
    slurm_hub.completes(run)
    check_read(slurm_hub.runs, run)
    folder = f"results/{run}/attempt_1/"
    outputs = {key: content for key, content in bucket.objects[BUCKET].items() if key.startswith(folder)}
    assert outputs == {f"{folder}node_{rank}/rank-{rank}": f"of rank {rank}".encode() for rank in range(2)}


def test_data_lies_in_a_folder_that_all_nodes_have(slurm_hub: SlurmHub) -> None:
    folder = slurm_hub.slurm.folder / "data"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    slurm_hub.send("POST", "/api/v1/datastores/", {"name": "shared", "kind": "folder", "path": str(folder)})
    run = slurm_hub.script(
        READ, inputs={"birds": {"datastore": "shared", "path": "birds"}}, distribution=TWO_NODES
    )
    slurm_hub.completes(run)
    check_read(slurm_hub.runs, run)
    saved = {row["path"]: row["sha256"] for row in slurm_hub.runs.get(f"/runs/{run}/outputs/")["outputs"]}
    assert saved == {f"rank-{rank}": sha256(f"of rank {rank}".encode()) for rank in range(2)}


def test_data_is_read_by_reference(slurm_hub: SlurmHub, bucket: S3Server) -> None:
    inputs = {"birds": {"dataset": "birds", "mode": "reference"}}
    run = slurm_hub.script(STREAM, inputs=inputs, distribution=TWO_NODES)
    slurm_hub.completes(run)
    check_read(slurm_hub.runs, run)


def check_read(runs: Runs, run: str) -> None:
    expected = f"{len(FILES)} {DIGEST}\n".encode()
    assert [runs.log(run, name) for name in LOGS] == [expected] * 2


def test_a_preempted_run_goes_on_from_its_checkpoint(slurm_hub: SlurmHub, bo: Person) -> None:
    slurm_hub.change(partition="spare")
    try:
        run = slurm_hub.script(SAVE)
        slurm_hub.starts(run)
        eventually(lambda: _complete(slurm_hub.runs, run), PATIENCE_S, "its checkpoint is kept")
        urgent = bo.submit("sleep 5", nodes=3, memory_mb=MEMORY_MB, partition="urgent")
        bo.until(urgent, "RUNNING")
        slurm_hub.completes(run)
    finally:
        slurm_hub.change(partition="main")
    assert slurm_hub.runs.detail(run)["attempt"] == 2
    assert b"goes on from step 1\n" in slurm_hub.runs.log(run)


def _complete(runs: Runs, run: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = runs.get(f"/runs/{run}/checkpoints/")
    return [row for row in rows if row["state"] == "complete"]


def test_nodes_keep_what_the_next_run_of_the_account_needs(slurm_hub: SlurmHub, tmp_path: Path) -> None:
    place = slurm_hub.slurm.folder / "node-cache"
    place.mkdir(mode=0o1777, exist_ok=True)
    place.chmod(0o1777)
    slurm_hub.change(node_cache=str(place))
    (tmp_path / "index").mkdir()
    try:
        with PackageIndex(tmp_path / "index").serving() as index:
            index.add("keptlib", "1.0")
            body = {
                "name": "kept",
                "kind": "pip",
                "requirements": [f"--index-url {index.url}", "keptlib"],
                "python": "3.11",
            }
            version = described(slurm_hub.hub, body)
            assert version["state"] == "locked", version["failure"]
            runs = []
            for _ in range(2):
                runs.append(
                    slurm_hub.script("import keptlib", environment={"name": "kept"}, resources=MEMORY)
                )
                slurm_hub.completes(runs[-1])
                eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job has ended")
    finally:
        slurm_hub.change(node_cache="")
    builds = [
        any(ENVIRONMENT_LOG.partition(".")[0] in name for name in slurm_hub.runs.logs(run)) for run in runs
    ]
    assert builds == [True, False]
    assert [path.name for path in place.iterdir()] == [str(ADA)]
