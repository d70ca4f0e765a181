"""Real hubs whose logs are in the object store: read by HTTP, by another server, after restorations, and when
the hub has left the store."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from jobs.logs.archived_logs import REUSED_FOR_S
from tests import runs
from tests.backup.hubs import other_hub
from tests.hub import Hub, eventually
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = pytest.mark.slow
LOG = "70_driver_log.txt"
SCRIPT = """
for number in range(20_000):
    print("line", number)
"""
ARCHIVE = """
from datetime import timedelta
from django.utils import timezone
from jobs.log_archive import archive_round
print(archive_round.archive_due(timezone.now() + timedelta(hours=25, minutes={minutes})))
"""
KILLED = """
import contextlib, os, signal
from pathlib import Path
from jobs.log_archive import attempt_logs

def end(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

@contextlib.contextmanager
def end_after():
    yield True
    end()

{step}
"""
# Each ends a process before the step, or in its middle.
STEPS = {
    "attempt_logs.log_store.mark_archived = end": 0,
    "attempt_logs.BlobWriter.finish = end": 0,
    "attempt_logs._record = end": 0,
    "attempt_logs.deletions.allowed = end": 3,
    "Path.unlink = end": 3,
    "attempt_logs.deletions.allowed = end_after": 3,
}
UPLOAD = """
from workspaces.stored_files import blob_uploads
blob_uploads.upload_waiting()
"""
READ = """
import hashlib, os
from jobs.logs import log_store
size = log_store.size("{run}", 1, "{log}")
tail = log_store.read("{run}", 1, "{log}", size - 6, 100)
descriptor = log_store.open_log("{run}", 1, "{log}")
content = os.read(descriptor, 2**24)
print(size, tail.decode().strip(), log_store.is_complete("{run}", 1, "{log}"))
print(hashlib.sha256(content).hexdigest())
"""


class ArchivedHub(NamedTuple):
    """A hub that has stopped, and one of its runs, of which every log is in the store alone."""

    hub: Hub
    run: str
    content: bytes
    server: S3Server

    @property
    def access(self) -> dict[str, str]:
        return access(self.server)

    @property
    def said(self) -> list[str]:
        """What READ prints."""
        return [str(len(self.content)), "19999", "True", hashlib.sha256(self.content).hexdigest()]

    def read_by(self, hub: Hub) -> list[str]:
        return shell(hub, READ.format(run=self.run, log=LOG)).stdout.split()


def access(server: S3Server) -> dict[str, str]:
    return {
        "BLOB_STORE": f"s3://{BUCKET}/hub",
        "BLOB_STORE_ENDPOINT": server.url,
        "BLOB_STORE_KEY_ID": KEY_ID,
        "BLOB_STORE_SECRET": SECRET,
    }


def archive(hub: Hub, minutes: int) -> int:
    return int(shell(hub, ARCHIVE.format(minutes=minutes)).stdout.split()[-1])


def shell(hub: Hub, script: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    return hub.manage("shell", "--no-imports", "-c", script, check=check)


def copy_of(hub: Hub, folder: Path) -> Hub:
    copy = Hub(folder / "data", **hub.settings)
    shutil.copytree(hub.data_dir, copy.data_dir, ignore=shutil.ignore_patterns("run", "valkey"))
    return copy


def drop_copies(hub: Hub) -> None:
    for copy in (hub.data_dir / "blobs").glob("??/*"):
        copy.unlink()


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchivedHub]:
    folder, server = tmp_path_factory.mktemp("archived"), S3Server()
    keyring = str(folder / "data.keyring" / "keys")
    hub = Hub(folder / "data", SECRETS_KEYRING=keyring, **access(server)).start()
    try:
        run = runs.submit(hub, SCRIPT)
        runs.wait_for(hub, run, "Completed")
        content = runs.log(hub, run)
        archive(hub, 0)
        # By the web server or the worker of the hub that runs.
        sha256 = hashlib.sha256(content).hexdigest()
        eventually(lambda: any(sha256 in key for key in server.objects[BUCKET]), 60)
        eventually(lambda: archive(hub, 3), 60)
        assert not (hub.data_dir / "runs" / run / "1" / "logs" / LOG).exists()
        drop_copies(hub)
        # The file went minutes earlier than by the clock, so the web server may not know the rows yet.
        time.sleep(REUSED_FOR_S)
        _check_http(hub, run, content, server)
    finally:
        hub.stop()
    drop_copies(hub)
    yield ArchivedHub(hub, run, content, server)
    server.close()


def _check_http(hub: Hub, run: str, content: bytes, server: S3Server) -> None:
    assert runs.log(hub, run) == content
    with hub.client() as client:
        address = f"/api/v1/runs/{run}/logs/{LOG}?download=1"
        part = client.get(address, headers={"Range": "bytes=7-11"})
        assert (part.status_code, part.content) == (httpx.codes.PARTIAL_CONTENT, content[7:12])
        server.is_away = True
        assert client.get(address).status_code == httpx.codes.SERVICE_UNAVAILABLE
        server.is_away = False
        assert client.get(address).content == content


def test_another_server_has_the_folder_of_runs_in_common_alone(archived: ArchivedHub, tmp_path: Path) -> None:
    second = Hub(tmp_path / "second", **archived.hub.settings)
    second.settings["DATABASE_URL"] = f"sqlite:///{archived.hub.data_dir / 'trainhub.sqlite3'}"
    second.data_dir.mkdir()
    (second.data_dir / "runs").symlink_to(archived.hub.data_dir / "runs")
    assert archived.read_by(second) == archived.said
    # Its own copy, which the search would use.
    assert list((second.data_dir / "blobs").glob("??/*"))
    assert not list((archived.hub.data_dir / "blobs").glob("??/*"))


def test_a_restoration_by_reference(archived: ArchivedHub, tmp_path: Path) -> None:
    archived.hub.manage("backup", str(tmp_path / "backups"))
    other = other_hub(tmp_path, **archived.access)
    assert ", 0 of them missing there." in other.manage("restore", str(tmp_path / "backups")).stdout
    assert archived.read_by(other) == archived.said


def test_a_restoration_by_content_onto_a_disk(archived: ArchivedHub, tmp_path: Path) -> None:
    archived.hub.manage("backup", "--with-objects", str(tmp_path / "backups"))
    other = other_hub(tmp_path)
    other.manage("restore", str(tmp_path / "backups"))
    assert archived.read_by(other) == archived.said


def test_a_hub_that_leaves_the_store(archived: ArchivedHub, tmp_path: Path) -> None:
    left = copy_of(archived.hub, tmp_path)
    left.settings["BLOB_CACHE_BYTES"] = "0"
    left.manage("blobs", "to-disk")
    for name in archived.access:
        del left.settings[name]
    left.manage("blobs", "forget-other-stores")
    assert archived.read_by(left) == archived.said
    assert archive(left, 0) == 0
    # All the way back, as for an earlier version.
    assert "0 logs are stored files" in left.manage("logs", "to-runs").stdout
    log = left.data_dir / "runs" / archived.run / "1" / "logs" / LOG
    assert log.read_bytes() == archived.content
    assert archived.read_by(left) == archived.said


def test_a_worker_that_is_killed_at_any_step_loses_nothing(archived: ArchivedHub, tmp_path: Path) -> None:
    hub = copy_of(archived.hub, tmp_path)
    hub.settings["LOG_ARCHIVE_AFTER_HOURS"] = "0"
    hub.manage("logs", "to-runs")
    del hub.settings["LOG_ARCHIVE_AFTER_HOURS"]
    for step, minutes in STEPS.items():
        if minutes:
            archive(hub, 0)
            shell(hub, UPLOAD)
        killed = shell(hub, KILLED.format(step=step) + ARCHIVE.format(minutes=minutes), check=False)
        assert killed.returncode == -signal.SIGKILL, (step, killed.stderr)
        assert archived.read_by(hub) == archived.said, step
    assert archive(hub, 3) == 1
    assert archived.read_by(hub) == archived.said
