"""A person's machine, which has Python and nothing of TrainHub, and an index of packages for it."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COPIED = re.compile(r'data-mount="copy" data-text="([^"]+)"')
METADATA = "Metadata-Version: 2.1\nName: trainhub\nVersion: 99.0\n"


class Machine:
    """A folder with a virtual environment whose programs come first on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=240)

    def use_pip(self, version: str) -> None:
        """Replaces its pip by this version."""
        python = str(self.folder / "venv" / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--quiet", "--python", python]
        subprocess.run([*pip, "install", f"pip=={version}"], check=True, timeout=240)

    def shell(self, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """What a shell says to the line that a person pastes. Nothing of this machine's pip counts."""
        env = {
            "PATH": f"{self.folder / 'venv' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **variables,
        }
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


def copied_lines(page: str) -> list[str]:
    """The lines on a page that its buttons copy."""
    return [html.unescape(text) for text in COPIED.findall(page)]


@contextmanager
def foreign_index(folder: Path) -> Iterator[str]:
    """The address of an index of this machine whose package `trainhub` is newer than the hub's."""
    packages = folder / "trainhub"
    packages.mkdir(parents=True)
    name = "trainhub-99.0-py3-none-any.whl"
    with zipfile.ZipFile(packages / name, "w") as wheel:
        info = "trainhub-99.0.dist-info"
        wheel.writestr(f"{info}/METADATA", METADATA)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (packages / "index.html").write_text(f'<!doctype html><a href="{name}">{name}</a>')
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
