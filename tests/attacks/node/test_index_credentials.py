"""S25: the password of a package index, which the agent has in its variables, seen by packages, other
accounts and logs."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.attacks.node.runner import needs_root, nobody
from tests.node.builders import script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.link import wheels
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_node import proc
from trainhub_node.agent import Agent
from trainhub_node.environments.pip import _index_variables

PASSWORD = "pw-of-the-index"


class _Index(BaseHTTPRequestHandler):
    folder: Path

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        expected = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            self._answer(401, b"", {"WWW-Authenticate": 'Basic realm="index"'})
        elif self.path == "/simple/tinylib/":
            name = next(self.folder.glob("*.whl")).name
            self._answer(200, f'<a href="/{name}">{name}</a>'.encode(), {"Content-Type": "text/html"})
        elif self.path.endswith(".whl"):
            self._answer(200, next(self.folder.glob("*.whl")).read_bytes(), {})
        else:
            self._answer(404, b"", {})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index that asks for a password, and has one wheel; with the password in it."""
    wheels.make(tmp_path)
    handler = type("Index", (_Index,), {"folder": tmp_path})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://user:{PASSWORD}@127.0.0.1:{server.server_address[1]}/simple/"
        server.shutdown()


class _Onlooker(threading.Thread):
    """What command lines and variables of pip's processes below `folder` hold while an environment is built.
    Other tests build environments at the same time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = str(folder).encode()
        self.over = threading.Event()
        self.seen: set[tuple[bytes, bool]] = set()

    def run(self) -> None:
        while not self.over.wait(0.02):
            for one in proc.list_processes():
                words = proc.read(f"/proc/{one.pid}/cmdline") or b""
                if b"\0pip\0" in words and self.folder in words:
                    variables = proc.read(f"/proc/{one.pid}/environ")
                    # Nothing of a process that has ended meanwhile.
                    if variables:
                        self.seen.add((words, PASSWORD.encode() in variables))


@needs_root
@pytest.mark.slow
def test_only_the_download_has_the_password_and_no_log_or_command_line_shows_it(
    hub: FakeHub,
    start_agent: Callable[..., Agent],
    open_folder: Path,
    index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S25. The agent's PIP_* variables were given to all that pip started, and an index of an environment to
    its arguments."""
    monkeypatch.setenv("PIP_INDEX_URL", index)
    spec = EnvironmentSpec(
        name="tiny", version="1", kind="venv", requirements=("tinylib",), index_urls=(index,)
    )
    start_agent(settings(hub, open_folder / "node", run_as=nobody(), python="/usr/bin/python3"))
    onlooker = _Onlooker(open_folder)
    onlooker.start()

    key = hub.give(script(hub, "import tinylib\nprint(tinylib.VERSION)\n", environment=spec))
    fact = hub.wait_done(key, 120)

    onlooker.over.set()
    onlooker.join(10)
    end_children(open_folder)
    assert hub.log(key) == b"1.0\n", (fact, hub.log(key, ENVIRONMENT_LOG))
    assert {has_it for words, has_it in onlooker.seen if b"\0download\0" in words} == {True}
    assert {has_it for words, has_it in onlooker.seen if b"\0install\0" in words} == {False}
    assert [words for words, _ in onlooker.seen if PASSWORD.encode() in words] == []
    assert PASSWORD.encode() not in b"".join(hub.logs.values())


def test_the_indexes_of_an_environment_come_before_and_beside_the_agents_own() -> None:
    ours = {"PIP_INDEX_URL": "http://a", "PIP_EXTRA_INDEX_URL": "http://b", "PIP_FIND_LINKS": "/wheels"}
    assert _index_variables(ours, []) == ours
    assert _index_variables(ours, ["http://x", "http://y"]) == {
        "PIP_INDEX_URL": "http://x",
        "PIP_EXTRA_INDEX_URL": "http://b http://y",
        "PIP_FIND_LINKS": "/wheels",
    }
