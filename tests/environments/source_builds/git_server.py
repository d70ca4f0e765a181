"""Git repositories over HTTP, served by git itself (`git http-backend`)."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PERSON = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}


class GitServer:
    """Serves the bare repositories in `folder`. `login`: the user and password ("user:password") without
    which it answers 401. `redirects`: it sends everybody to another address. `is_silent`: it accepts requests
    and answers none of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.login = ""
        self.redirects = False
        self.is_silent = False
        self.ended = threading.Event()
        handler = type("Handler", (_Handler,), {"git": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}.git"

    def commit(self, name: str, files: Mapping[str, str], tag: str = "", executable: str = "") -> str:
        """Adds a commit with the files, and with what has changed in the folder NAME-tree, to the branch
        `main` of the repository, and returns its name. Without a change it returns the last one's."""
        tree = self.folder / f"{name}-tree"
        if not tree.exists():
            git_in(self.folder, "init", "-q", "-b", "main", str(tree))
            git_in(self.folder, "init", "-q", "--bare", "-b", "main", f"{name}.git")
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        if executable:
            (tree / executable).chmod(0o755)
        git_in(tree, "add", "-A")
        if not git_in(tree, "status", "--porcelain"):
            return git_in(tree, "rev-parse", "HEAD")
        git_in(tree, "commit", "-q", "-m", "Change")
        if tag:
            git_in(tree, "tag", "-a", "-m", tag, tag)
        git_in(tree, "push", "-q", "--follow-tags", str(self.folder / f"{name}.git"), "main")
        return git_in(tree, "rev-parse", "HEAD")

    @contextmanager
    def serving(self) -> Iterator[GitServer]:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            self.ended.set()
            self._server.shutdown()
            self._server.server_close()

    def answer(self, request: Mapping[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            **request,
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environ, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [_pair(line) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        return status, [item for item in headers if item[0] != "Status"], content


class _Handler(BaseHTTPRequestHandler):
    git: GitServer

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        silent_until = time.monotonic() + 60
        while self.git.is_silent and time.monotonic() < silent_until and not self.git.ended.wait(0.1):
            pass
        pair = base64.b64encode(self.git.login.encode()).decode()
        if self.git.login and self.headers.get("Authorization") != f"Basic {pair}":
            self._send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
        elif self.git.redirects:
            self._send(301, [("Location", "http://169.254.169.254/")], b"")
        else:
            path, _, query = self.path.partition("?")
            request = {
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            self._send(*self.git.answer(request, body))

    do_POST = do_GET  # noqa: N815 - http.server's name

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def git_in(folder: Path, *arguments: str) -> str:
    """Runs git in the folder, apart from the settings of this machine, and returns what it writes."""
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **PERSON}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name, value
