"""The process that uses a store: with the rights of the account of the run, and never half of a file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_launch.data.stores import S3, SignIn, Store, folder_store
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.node_cache import find_obstore
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


WEIGHTS = ["weights.bin", "outputs/weights.bin", ""]


def write(attempt: Path, store: Store, path: str, **request: Any) -> list[dict[str, Any]]:
    """What the process says while it writes the file."""
    return carry_out(attempt, store, path, task="write", files=[WEIGHTS], **request)


def carry_out(attempt: Path, store: Store, path: str, **request: Any) -> list[dict[str, Any]]:
    """What the process says."""
    content = {
        "store": store.to_json(),
        "path": path,
        "secret": "",
        "attempt": str(attempt),
        "account": None,
        "hidden": [],
    } | request
    done = subprocess.run(
        [*AGENT_WRAPPER, "store-files", find_obstore()],
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
    lines = write(attempt, folder_store(str(base)), f"{base}/run/attempt_1", account=ACCOUNT)
    assert lines == [written("weights.bin", b"trained"), {"done": True}]
    file = base / "run" / "attempt_1" / "weights.bin"
    assert file.read_bytes() == b"trained"
    assert (file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o777) == (UID, UID, 0o644)
    assert [path.name for path in file.parent.iterdir()] == ["weights.bin"]


@needs_root
def test_attempts_with_other_accounts_write_beside_each_other(attempt: Path, tmp_path: Path) -> None:
    base = tmp_path / "results"
    base.mkdir()
    base.chmod(0o1777)
    for number, uid in enumerate((UID, UID + 1), start=1):
        for path in (attempt / "work").rglob("*"):
            os.chown(path, uid, uid)
        account = ACCOUNT | {"uid": uid, "gid": uid, "groups": []}
        lines = write(attempt, folder_store(str(base)), f"{base}/birds/run/attempt_{number}", account=account)
        assert lines[-1] == {"done": True}
    modes = {path.name: path.stat().st_mode & 0o7777 for path in base.rglob("*") if path.is_dir()}
    assert modes == {"birds": 0o1777, "run": 0o1777, "attempt_1": 0o755, "attempt_2": 0o755}


@needs_root
def test_where_the_run_may_not_write_nothing_is_written(attempt: Path, tmp_path: Path) -> None:
    as_run(attempt)
    base = tmp_path / "results"
    base.mkdir(mode=0o755)
    (line,) = write(attempt, folder_store(str(base)), f"{base}/run/attempt_1", account=ACCOUNT)
    assert line["error"] == (
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
    lines = write(attempt, folder_store(str(base)), f"{base}/run", account=ACCOUNT)
    assert lines == [{"unread": "weights.bin"}, {"done": True}]


def test_a_folder_that_runs_do_not_see_is_refused(attempt: Path, tmp_path: Path) -> None:
    base = tmp_path / "agent" / "results"
    base.mkdir(parents=True)
    hidden = [str(tmp_path / "agent")]
    (line,) = write(attempt, folder_store(str(base)), f"{base}/run", hidden=hidden)
    assert line["error"] == f"{base} lies in {tmp_path / 'agent'}, of which runs see nothing."
    assert not list(base.iterdir())


def test_a_folder_that_is_not_there_is_not_made(attempt: Path, tmp_path: Path) -> None:
    base = tmp_path / "not-mounted"
    (line,) = write(attempt, folder_store(str(base)), f"{base}/run")
    assert line["error"] == f"{base} is not there: mount its file system on that node."
    assert not base.exists()


def test_a_file_that_is_not_the_expected_one_is_not_written(attempt: Path, tmp_path: Path) -> None:
    files = [["12/weights.bin", "outputs/weights.bin", "0" * 32]]
    store, path = folder_store(str(tmp_path)), f"{tmp_path}/run"
    assert carry_out(attempt, store, path, task="write", files=files) == [
        {"unread": "12/weights.bin"},
        {"done": True},
    ]
    assert not Path(path).exists()


@pytest.fixture
def bucket() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


def store_at(server: S3Server) -> Store:
    return Store(S3, SignIn.SECRET, {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID})


def read(attempt: Path, store: Store, path: str, content: bytes, **request: Any) -> list[dict[str, Any]]:
    """What the process says while it reads `weights.bin`, which should have this content."""
    (attempt / "restored").mkdir(exist_ok=True)
    files = [["weights.bin", len(content), hashlib.sha256(content).hexdigest()]]
    into = str(attempt / "restored")
    return carry_out(attempt, store, path, task="read", files=files, into=into, **request)


def test_what_was_written_is_read_again_and_removed(attempt: Path, bucket: S3Server) -> None:
    store = store_at(bucket)
    write(attempt, store, "run/12", secret=SECRET)
    write(attempt, store, "run/123", secret=SECRET)
    assert read(attempt, store, "run/12", b"trained", secret=SECRET) == [{"done": True}]
    (file,) = (attempt / "restored").iterdir()
    assert (file.name, file.read_bytes()) == (hashlib.sha256(b"trained").hexdigest(), b"trained")
    removed = carry_out(attempt, store, "run", task="remove", names=["12", "13"], secret=SECRET)
    assert removed == [{"done": True}]
    assert list(bucket.objects[BUCKET]) == ["run/123/weights.bin"]


@needs_root
def test_a_folder_is_read_and_emptied_with_the_rights_of_the_run(attempt: Path, tmp_path: Path) -> None:
    as_run(attempt)
    base = tmp_path / "results"
    base.mkdir()
    os.chown(base, UID, UID)
    store = folder_store(str(base))
    write(attempt, store, f"{base}/run/12", account=ACCOUNT)
    assert read(attempt, store, f"{base}/run/12", b"trained", account=ACCOUNT) == [{"done": True}]
    (base / "run").chmod(0o555)
    os.chown(base / "run", 0, 0)
    remove = {"task": "remove", "names": ["12"], "account": ACCOUNT}
    (line,) = carry_out(attempt, store, f"{base}/run", **remove)
    assert line["error"] == (
        f"The account of this run (user {UID}, group {UID}) may not remove files from {base}/run: give it "
        "the right to, or name another datastore."
    )
    os.chown(base / "run", UID, UID)
    (base / "run").chmod(0o755)
    assert carry_out(attempt, store, f"{base}/run", **remove) == [{"done": True}]
    assert not list((base / "run").iterdir())


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_files_that_stay_are_not_removed(attempt: Path, bucket: S3Server, tmp_path: Path, kind: str) -> None:
    (tmp_path / "results").mkdir()
    store = store_at(bucket) if kind == "bucket" else folder_store(str(tmp_path / "results"))
    top = "run" if kind == "bucket" else f"{tmp_path}/results/run"
    names = ["1/a/same.bin", "1/a/deep/new.bin", "1/b/new.bin", "2/a/other.bin"]
    files = [[name, "outputs/weights.bin", ""] for name in names]
    carry_out(attempt, store, top, task="write", files=files, secret=SECRET)
    remove = {"task": "remove", "names": ["1"], "keep": ["1/a/same.bin"], "secret": SECRET}
    for _ in range(2):
        assert carry_out(attempt, store, top, **remove) == [{"done": True}]
        if kind == "bucket":
            there = {key.removeprefix("run/") for key in bucket.objects[BUCKET]}
        else:
            there = {str(path.relative_to(top)) for path in Path(top).rglob("*") if path.is_file()}
            assert not (Path(top) / "1" / "b").exists()
        assert there == {"1/a/same.bin", "2/a/other.bin"}


def test_what_may_not_be_removed_is_named_with_the_remedy(attempt: Path, bucket: S3Server) -> None:
    write(attempt, store_at(bucket), "run/12", secret=SECRET)
    bucket.deletes = False
    (line,) = carry_out(attempt, store_at(bucket), "run", task="remove", names=["12"], secret=SECRET)
    assert line["error"] == (
        f"The bucket {BUCKET} does not let these credentials remove run/12 (AccessDenied): give them "
        "the rights to list and to delete, or remove it yourself."
    )


def test_what_was_changed_in_the_store_is_not_used(attempt: Path, bucket: S3Server) -> None:
    bucket.objects[BUCKET]["run/12/weights.bin"] = b"TRAINED"
    (line,) = read(attempt, store_at(bucket), "run/12", b"trained", secret=SECRET)
    assert line["error"] == "weights.bin is not what was saved there: it was changed or damaged since."
    assert not [path for path in (attempt / "restored").iterdir() if not path.name.endswith(".part")]


@pytest.mark.parametrize("part", [b"tra", b"wro", b"trained", b"another one"])
@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_what_an_earlier_call_has_left_is_continued(
    attempt: Path, bucket: S3Server, tmp_path: Path, kind: str, part: bytes
) -> None:
    content = b"trained"
    store, path = store_at(bucket), "run/12"
    if kind == "folder":
        store, path = folder_store(str(tmp_path)), f"{tmp_path}/run/12"
    write(attempt, store, path, secret=SECRET)
    target = attempt / "restored" / hashlib.sha256(content).hexdigest()
    target.parent.mkdir()
    target.with_name(f"{target.name}.part").write_bytes(part)
    assert read(attempt, store, path, content, secret=SECRET) == [{"done": True}]
    assert [(file, file.read_bytes()) for file in target.parent.iterdir()] == [(target, content)]


def test_what_is_not_in_the_store_is_named(attempt: Path, bucket: S3Server) -> None:
    (line,) = read(attempt, store_at(bucket), "run/12", b"trained", secret=SECRET)
    assert "has no run/12/weights.bin" in line["error"]


def test_a_store_that_answers_503_is_asked_again(attempt: Path) -> None:
    server = S3Server()
    server.statuses.extend([503, 503])
    settings = {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    try:
        lines = write(attempt, Store(S3, SignIn.SECRET, settings), "run/attempt_1", secret=SECRET)
    finally:
        server.close()
    # Meanwhile it may have said how far it is.
    assert lines[-2:] == [written("weights.bin", b"trained"), {"done": True}]
    assert server.objects[BUCKET] == {"run/attempt_1/weights.bin": b"trained"}


def test_a_bucket_that_is_not_there_is_named(attempt: Path) -> None:
    server = S3Server()
    settings = {"bucket": "absent", "endpoint": server.url, "access_key_id": KEY_ID}
    try:
        (line,) = write(attempt, Store(S3, SignIn.SECRET, settings), "run", secret=SECRET)
    finally:
        server.close()
    assert line["error"] == "There is no bucket absent: check its name and the endpoint."
