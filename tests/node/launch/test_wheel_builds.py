"""Orders to build wheels from source: a real agent, uv and compiler, and a hub that serves the files of one
order and takes what was built."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from tests.environments.source_builds.source_packages import make_source
from tests.node.builders import settings
from tests.node.hub import FakeHub
from tests.node.launch.test_hub_index import TICKET, OrderIndex, no_settings  # noqa: F401
from tests.node.processes import child_pid, remaining_processes
from tests.node.test_run_as import nobody_account
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import MAKE, EnvironmentSpec, NodeOrder, OrderKind
from trainhub_launch.plan import NodeCommand
from trainhub_node.agent import Agent
from trainhub_node.environments import builder_account
from trainhub_node.environments.build_process import BuildProcess
from trainhub_node.environments.making import build_tools

pytestmark = pytest.mark.slow
# What code of a package tries while it is built.
ATTACKS = """
import os, socket
print("account", os.getuid())
for name, attempt in {
    "network": lambda: socket.create_connection(("127.0.0.1", PORT), 5),
    "node folder": lambda: os.listdir("NODE"),
    "environments": lambda: open("CACHE/environments/mine", "w"),
    "build environment": lambda: open(os.path.join(os.path.dirname(os.__file__), "mine"), "w"),
    "package": lambda: open(base.__file__, "a"),
}.items():
    try:
        attempt()
        print("could", name)
    except OSError as error:
        print("refused", name)
"""


class UploadIndex(OrderIndex):
    """Also takes files. `uploads`: path -> bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.uploads: dict[str, bytes] = {}
        index = self

        def put(handler: BaseHTTPRequestHandler) -> None:
            index.uploads[handler.path] = handler.rfile.read(int(handler.headers["Content-Length"]))
            handler.send_response(201)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        self._server.RequestHandlerClass.do_PUT = put  # type: ignore[attr-defined]

    def serve_source(self, name: str, **fields: str) -> str:
        """Adds a source distribution where the hub serves those of an order; returns its SHA-256."""
        sha256 = make_source(self.folder, name, **fields)
        (self.folder / sha256).mkdir()
        (self.folder / f"{name}-1.0.tar.gz").rename(self.folder / sha256 / f"{name}-1.0.tar.gz")
        return sha256


@pytest.fixture
def index(tmp_path: Path) -> Iterator[UploadIndex]:
    folder = tmp_path / "index"
    folder.mkdir()
    index = UploadIndex(folder)
    with index.serving():
        yield index


def wheel_order(index: UploadIndex, name: str, sha256: str, **package: Any) -> NodeOrder:
    base = index.add("base")
    lock = f"base==1.0 \\\n    --hash=sha256:{base}\n"
    build = {
        "name": name,
        "version": "1.0",
        "filename": f"{name}-1.0.tar.gz",
        "sha256": sha256,
        "variables": {},
        "programs": [],
        "compiler_flags": [],
        "checks": [],
        **package,
    }
    return NodeOrder(
        run=uuid.uuid4().hex,
        attempt=1,
        command=NodeCommand("here", 0, "127.0.0.1", ()),
        environment=EnvironmentSpec("own", "1", MAKE),
        snapshot="",
        snapshot_size=0,
        package_index=index.order_url,
        package_ticket=TICKET,
        kind=OrderKind.BUILD,
        make={
            "kind": "wheels",
            "lock": lock,
            "build_lock": lock,
            "packages": [build],
            "upload": f"{index.order_url}/upload",
            "ticket": "thu_ticket",
            "timeout_s": 60,
            "max_bytes": 10**8,
        },
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other accounts can enter, as pytest's own cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has accounts for builds")
def test_code_of_a_package_reaches_nothing_of_the_node(
    hub: FakeHub,
    start_agent: Callable[..., Agent],
    index: UploadIndex,
    open_folder: Path,
) -> None:
    agent = start_agent(
        settings(hub, open_folder, run_as=nobody_account(), python="/usr/bin/python3", has_namespaces=True)
    )
    port = index.url.rpartition(":")[2].partition("/")[0]
    attacks = ATTACKS
    for word, value in {
        "PORT": port,
        "NODE": str(agent.settings.folder),
        "CACHE": str(agent.settings.cache),
    }.items():
        attacks = attacks.replace(word, value)
    sha256 = index.serve_source("compiled", extra=f"exec({attacks!r}, {{'base': base}})")
    key = hub.give(wheel_order(index, "compiled", sha256, checks=["import compiled; compiled.answer()"]))
    fact = hub.wait_done(key, 60)
    log = hub.log(key, ENVIRONMENT_LOG).decode()
    assert fact.error == "", log
    assert log.count("refused ") == 5, log
    assert "could " not in log
    account = int(log.partition("account ")[2].split()[0])
    assert account in builder_account.UIDS[:-1]
    assert not builder_account.builder_processes(account)
    (path,) = index.uploads
    assert path == f"/upload/files/{hashlib.sha256(index.uploads[path]).hexdigest()}"
    assert not [*agent.settings.environments.glob("*.scratch")]


@pytest.mark.parametrize(
    ("package", "sentence"),
    [
        (
            {"programs": [["nowhere++", "g++-nowhere"]]},
            "compiled cannot be built on this node without nowhere++. Install it there (Debian: apt-get "
            "install g++-nowhere), or build on another node.",
        ),
        ({"checks": ["import compiled.part"]}, "compiled 1.0 was built, but does not work: "),
    ],
)
def test_what_is_missing_is_named(
    hub: FakeHub, agent: Agent, index: UploadIndex, package: dict[str, Any], sentence: str
) -> None:
    order = wheel_order(index, "compiled", index.serve_source("compiled"), **package)
    fact = hub.wait_done(hub.give(order), 60)
    assert fact.error.startswith(sentence)
    assert not index.uploads
    assert not [*agent.settings.environments.glob("*.scratch")]


def test_whose_process_is_killed_leaves_nothing(hub: FakeHub, agent: Agent, index: UploadIndex) -> None:
    sha256 = index.serve_source("compiled", extra="import time; time.sleep(300)")
    key = hub.give(wheel_order(index, "compiled", sha256))
    hub.wait_log(key, b"Building wheel", ENVIRONMENT_LOG, 60)
    os.kill(child_pid(agent.settings.folder / "attempts", key), signal.SIGKILL)
    fact = hub.wait_done(key, 60)
    assert fact.error_kind == "internal"
    assert not remaining_processes(key)
    assert not [*agent.settings.environments.glob("*.scratch")]
    assert not index.uploads


def test_flags_are_added_where_the_arguments_match(tmp_path: Path) -> None:
    gang = cast("Any", None)
    process = BuildProcess(gang, "", str(tmp_path), builder=None)
    package = {"name": "x", "compiler_flags": [[["*part one/*", "*-DX=?*"], ["-DTWO", "-E"]]]}
    build_tools.write_compiler(process, package)
    for arguments, is_added in ((["-DX=?"], True), (["-DX=1"], False), (["-I/part one/a"], True)):
        done = subprocess.run(
            [build_tools.compiler_path(str(tmp_path), package), "-###", *arguments, "x.c"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ("TWO" in done.stderr) == is_added, done.stderr


def test_the_cuda_toolkit_is_where_its_headers_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts, toolkit = tmp_path / "scripts" / "bin", tmp_path / "cuda"
    for folder in (scripts, toolkit / "bin"):
        folder.mkdir(parents=True)
        (folder / "nvcc").write_text("#!/bin/sh\n")
        (folder / "nvcc").chmod(0o755)
    monkeypatch.setattr(build_tools, "CUDA_TOOLKIT", str(toolkit))
    monkeypatch.setenv("PATH", f"{scripts}:{toolkit}/bin:/usr/bin:/bin")
    assert build_tools.cuda_toolkit() == ""
    (toolkit / "include").mkdir()
    (toolkit / "include" / "cuda_runtime.h").touch()
    assert build_tools.cuda_toolkit() == str(toolkit), "beside a script that only calls its nvcc"
    (toolkit / "include").rename(scripts.parent / "include")
    assert build_tools.cuda_toolkit() == str(scripts.parent)
