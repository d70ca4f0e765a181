"""The process that writes outputs: with the rights of the account of the run, and never half of a file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stores.s3_server import BUCKET, KEY_ID, SECRET, S3Server
from trainhub_launch.data.stores import S3, SignIn, Store, folder_store
from trainhub_node.data.node_cache import find_obstore
from trainhub_node.launch import wrapper
from trainhub_node.rundir import RunDir

UID = 60_123
ACCOUNT = {"name": f"run{UID}", "uid": UID, "gid": UID, "home": "/nonexistent"}


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    """The folder of an attempt whose script has left a file."""
    for folder in tmp_path, *tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    outputs = Path(RunDir(f"{tmp_path}/attempts", "a" * 32, 1).work) / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "weights.bin").write_bytes(b"trained")
    return outputs.parents[1]


def write(attempt: Path, store: Store, path: str, **request: Any) -> list[dict[str, Any]]:
    """What the process says."""
    content = {
        "store": store.to_json(),
        "path": path,
        "secret": "",
        "attempt": str(attempt),
        "account": None,
        "hidden": [],
        "known": [],
    } | request
    done = subprocess.run(
        [*wrapper.AGENT_WRAPPER, "outputs", find_obstore()],
        input=json.dumps(content),
        capture_output=True,
        text=True,
        env={},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(name: str, content: bytes) -> dict[str, Any]:
    return {"file": {"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}


def as_run(attempt: Path) -> None:
    for path in (attempt / "work").rglob("*"):
        os.chown(path, UID, UID)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another account")


@needs_root
def test_a_file_belongs_to_the_account_of_the_run(attempt: Path, tmp_path: Path) -> None:
    as_run(attempt)
    base = tmp_path / "results"
    base.mkdir()
    os.chown(base, UID, UID)
    said = write(attempt, folder_store(str(base)), f"{base}/run/attempt_1", account=ACCOUNT)
    assert said == [written("weights.bin", b"trained"), {"done": True}]
    file = base / "run" / "attempt_1" / "weights.bin"
    assert file.read_bytes() == b"trained"
    assert (file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o777) == (UID, UID, 0o644)
    assert [path.name for path in file.parent.iterdir()] == ["weights.bin"]


@needs_root
def test_where_the_run_may_not_write_nothing_is_written(attempt: Path, tmp_path: Path) -> None:
    as_run(attempt)
    base = tmp_path / "results"
    base.mkdir(mode=0o755)
    (said,) = write(attempt, folder_store(str(base)), f"{base}/run/attempt_1", account=ACCOUNT)
    assert said["error"] == (
        f"The account of this run (user {UID}, group {UID}) may not write into {base}/run/attempt_1: give it "
        "the right to, or name another datastore."
    )
    assert not list(base.iterdir())


@needs_root
def test_a_file_of_another_account_is_not_written(attempt: Path, tmp_path: Path) -> None:
    """The run could have linked it into its folder."""
    (attempt / "work" / "outputs").chmod(0o777)
    base = tmp_path / "results"
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    assert write(attempt, folder_store(str(base)), f"{base}/run", account=ACCOUNT) == [{"done": True}]


def test_a_folder_that_runs_do_not_see_is_refused(attempt: Path, tmp_path: Path) -> None:
    base = tmp_path / "agent" / "results"
    base.mkdir(parents=True)
    hidden = [str(tmp_path / "agent")]
    (said,) = write(attempt, folder_store(str(base)), f"{base}/run", hidden=hidden)
    assert said["error"] == f"{base} lies in {tmp_path / 'agent'}, of which runs see nothing."
    assert not list(base.iterdir())


def test_a_folder_that_is_not_there_is_not_made(attempt: Path, tmp_path: Path) -> None:
    base = tmp_path / "not-mounted"
    (said,) = write(attempt, folder_store(str(base)), f"{base}/run")
    assert said["error"] == f"{base} is not there: mount its file system on that node."
    assert not base.exists()


def test_what_is_known_is_not_written_again(attempt: Path, tmp_path: Path) -> None:
    (attempt / "work" / "outputs" / "more.bin").write_bytes(b"more")
    said = write(attempt, folder_store(str(tmp_path)), f"{tmp_path}/run", known=["weights.bin"])
    assert said == [written("more.bin", b"more"), {"done": True}]


def test_a_store_that_answers_503_is_asked_again(attempt: Path) -> None:
    server = S3Server()
    server.statuses.extend([503, 503])
    settings = {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    try:
        said = write(attempt, Store(S3, SignIn.SECRET, settings), "run/attempt_1", secret=SECRET)
    finally:
        server.close()
    assert said == [written("weights.bin", b"trained"), {"done": True}]
    assert server.objects[BUCKET] == {"run/attempt_1/weights.bin": b"trained"}


def test_a_bucket_that_is_not_there_is_named(attempt: Path) -> None:
    server = S3Server()
    settings = {"bucket": "absent", "endpoint": server.url, "access_key_id": KEY_ID}
    try:
        (said,) = write(attempt, Store(S3, SignIn.SECRET, settings), "run", secret=SECRET)
    finally:
        server.close()
    assert said["error"] == "There is no bucket absent: check its name and the endpoint."
