"""A hub with BLOB_STORE: a run from its source to its outputs, while the store is away for a time;
and another server on the same database and bucket, with a disk of its own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, eventually
from tests.runs import submit, wait_for
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

WEIGHTS = b"w" * 100_000
SCRIPT = """
import pathlib
pathlib.Path("outputs").mkdir(exist_ok=True)
pathlib.Path("outputs/weights.bin").write_bytes(b"w" * 100_000)
"""
READ_THERE = """
from workspaces.stored_files import blob_cache
print(len(blob_cache.local_path({sha256!r}).read_bytes()))
"""


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def hub(tmp_path: Path, server: S3Server) -> Iterator[Hub]:
    access = {
        "BLOB_STORE": f"s3://{BUCKET}/hub",
        "BLOB_STORE_ENDPOINT": server.url,
        "BLOB_STORE_KEY_ID": KEY_ID,
        "BLOB_STORE_SECRET": SECRET,
        "BLOB_STORE_PRESIGN": "1",
    }
    hub = Hub(tmp_path / "data", **access).start()
    yield hub
    hub.cancel_all()
    hub.stop()


def copies(hub: Hub) -> list[Path]:
    return list((hub.data_dir / "blobs").glob("??/*"))


def test_a_run_whose_files_are_in_the_store(hub: Hub, server: S3Server, tmp_path: Path) -> None:
    first = submit(hub, SCRIPT)
    wait_for(hub, first, "Completed")
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    # The source and the output.
    eventually(lambda: len(server.objects[BUCKET]) == 2)
    assert any(sha256 in key for key in server.objects[BUCKET])
    for copy in copies(hub):
        copy.unlink()
    # The next run gets the same source from the store, and writes while that is away.
    with hub.client() as client:
        answer = client.get(f"/api/v1/runs/{first}/outputs/weights.bin")
        assert answer.content == WEIGHTS
    second = submit(hub, SCRIPT.replace('b"w"', 'b"v"'))
    server.is_away = True
    wait_for(hub, second, "Completed")
    server.is_away = False
    other = hashlib.sha256(WEIGHTS.replace(b"w", b"v")).hexdigest()
    eventually(lambda: any(other in key for key in server.objects[BUCKET]), 90)
    # Another server, with a disk of its own.
    env = {**hub.env, "DATA_DIR": str(tmp_path / "second"), "LOG_LEVEL": "WARNING"}
    env["DATABASE_URL"] = f"sqlite:///{hub.data_dir / 'trainhub.sqlite3'}"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-c", READ_THERE.format(sha256=other)],
        cwd=hub.project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[-1:] == [str(len(WEIGHTS))], done.stderr
    assert (tmp_path / "second" / "blobs" / other[:2] / other).exists()


def test_a_store_that_can_never_work_ends_the_start_with_the_setting(
    tmp_path: Path, server: S3Server
) -> None:
    hub = Hub(tmp_path / "data", BLOB_STORE="s3://nothing", BLOB_STORE_ENDPOINT=server.url)
    hub.settings |= {"BLOB_STORE_KEY_ID": KEY_ID, "BLOB_STORE_SECRET": SECRET}
    done = hub.manage("up", check=False)
    assert done.returncode
    assert "There is no bucket nothing" in done.stdout + done.stderr
