"""What brings the node program to the nodes of a Slurm, and the archive that it brings."""

from __future__ import annotations

import ast
import atexit
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.allocations import node_program
from clusters.backends.slurm import node_start
from clusters.backends.slurm.node_start import StartFailed, program_folder
from clusters.models import Allocation
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition


class Hub:
    """Gives one archive, and counts how often. `damaged`: how many times something else comes first."""

    def __init__(self) -> None:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            member = tarfile.TarInfo("trainhub_node/__init__.py")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"VALUE"))
        self.archive = data.getvalue()
        self.digest = hashlib.sha256(self.archive).hexdigest()
        self.status, self.damaged = 200, 0
        self.asked: list[str | None] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked.append(self.headers["Authorization"])
                data = b"<html>" if len(hub.asked) <= hub.damaged else hub.archive
                self.send_response(hub.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Not to the output of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINHUB_PROGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRAINHUB_CLAIM", "tha_1_x")
    monkeypatch.setattr(node_start, "RETRY_S", 0.01)
    monkeypatch.setattr(node_start, "locks", {})
    return tmp_path / "cache"


def test_any_python_can_read_it() -> None:
    ast.parse(Path(node_start.__file__).read_text(), feature_version=(3, 6))


def test_a_program_is_fetched_once(hub: Hub, home: Path) -> None:
    folder = program_folder(hub.url, hub.digest)
    assert Path(folder, "trainhub_node", "__init__.py").read_text() == "VALUE"
    # Another job, while the first one runs.
    first = dict(node_start.locks)
    node_start.locks.clear()
    assert program_folder(hub.url, hub.digest) == folder
    assert first
    assert hub.asked == ["Bearer tha_1_x"]
    assert sorted(path.name for path in home.iterdir()) == [
        f"node-{hub.digest[:16]}",
        f"node-{hub.digest[:16]}.lock",
    ]


def test_jobs_at_once_wait_for_one_of_them(hub: Hub, home: Path) -> None:
    program = Path(node_start.__file__).read_text().rpartition("if __name__")[0]
    code = f"{program}\nprint(program_folder(*sys.argv[1:3]))"
    jobs = [
        subprocess.Popen([sys.executable, "-I", "-c", code, hub.url, hub.digest], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    folders = {job.communicate(timeout=60)[0] for job in jobs}
    assert len(folders) == 1
    assert len(hub.asked) == 1


def test_what_is_not_the_archive_is_asked_for_again(hub: Hub, home: Path) -> None:
    hub.damaged = 2
    program_folder(hub.url, hub.digest)
    assert len(hub.asked) == 3


def test_a_hub_that_never_gives_it_is_named(hub: Hub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_start, "FETCH_WITHIN_S", 0.05)
    hub.damaged = 10**9
    with pytest.raises(StartFailed, match=f"could not be fetched from {hub.url}: what it sent is not"):
        program_folder(hub.url, hub.digest)
    assert [path.name for path in home.iterdir() if not path.name.endswith(".lock")] == []


def test_a_refusal_is_final(hub: Hub, home: Path) -> None:
    hub.status = 403
    with pytest.raises(StartFailed, match="does not give its package for nodes: HTTP Error 403"):
        program_folder(hub.url, hub.digest)
    assert len(hub.asked) == 1


def test_without_a_home_it_is_for_this_job_alone(
    hub: Hub, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRAINHUB_PROGRAM_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    removed: list[tuple[object, ...]] = []
    monkeypatch.setattr(atexit, "register", lambda *arguments, **_: removed.append(arguments[1:]))
    folder = program_folder(hub.url, hub.digest)
    assert Path(folder).is_dir()
    assert removed == [(str(Path(folder).parent),)]


def test_what_no_job_has_used_for_a_month_goes(hub: Hub, home: Path) -> None:
    home.mkdir()
    for name in ("node-old", "node-new"):
        (home / name).mkdir()
        (home / f"{name}.lock").touch()
    month_ago = time.time() - node_start.UNUSED_S - 1
    os.utime(home / "node-old.lock", (month_ago, month_ago))
    program_folder(hub.url, hub.digest)
    assert [path.name for path in home.glob("node-old*")] == []
    assert len(list(home.glob("node-new*"))) == 2


@pytest.mark.slow
@pytest.mark.django_db
class TestArchive:
    @pytest.fixture
    def _places(self, settings: Settings, tmp_path: Path) -> None:
        settings.NODE_WHEELS, settings.NODE_PROGRAMS = tmp_path / "wheels", tmp_path / "programs"

    @pytest.mark.usefixtures("_places")
    def test_it_starts_alone_and_is_packed_once(self, tmp_path: Path) -> None:
        archive = node_program.node_archive()
        assert archive is not None
        assert hashlib.sha256(archive.path.read_bytes()).hexdigest() == archive.sha256
        assert node_program.archive_path(archive.sha256) == archive.path
        node_program._by_wheel.clear()
        assert node_program.node_archive() == archive
        with tarfile.open(archive.path) as members:
            members.extractall(tmp_path / "tree", filter="data")
        program = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; "
        program += f"sys.path.insert(0, {str(tmp_path / 'tree')!r}); "
        program += "import trainhub_node.allocation, uv, rattler, obstore; print(uv.find_uv_bin())"
        shown = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert shown.stdout.strip() == str(tmp_path / "tree" / "bin" / "uv")

    @pytest.mark.parametrize("digest", ["", "../x", "a" * 63, "*" * 64, "A" * 64])
    @pytest.mark.usefixtures("_places")
    def test_only_digests_are_looked_up(self, digest: str) -> None:
        assert node_program.archive_path(digest) is None

    @pytest.mark.usefixtures("_places")
    def test_a_job_in_the_queue_finds_the_archive_that_it_names(self, settings: Settings) -> None:
        """Also after an upgrade of the hub, until no such job is left."""
        folder = Path(settings.NODE_PROGRAMS)
        folder.mkdir()
        earlier = folder / f"node-earlier-{'a' * 64}.tar.gz"
        earlier.touch()
        queued = make_allocation(make_partition(), "a" * 32)
        assert node_program.pack_problem() == ""
        assert earlier.exists()
        Allocation.objects.filter(pk=queued.pk).update(over_at=timezone.now())
        for packed in folder.glob("node-*.tar.gz"):
            if packed != earlier:
                packed.unlink()
        assert node_program.pack_problem() == ""
        assert not earlier.exists()

    @pytest.mark.usefixtures("_places")
    def test_a_folder_that_cannot_be_written_is_said(self, settings: Settings) -> None:
        folder = Path(settings.NODE_PROGRAMS)
        folder.touch()
        node_program._by_wheel.clear()
        assert node_program.pack_problem() == f"{folder} cannot be written: File exists"
