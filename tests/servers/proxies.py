"""What stands between clients and the servers."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.hub import PROJECT, Hub, free_port
from trainhub.up.children import end_with_parent


class Proxy:
    """nginx with the example of docs/servers.md, at `url`."""

    def __init__(self, folder: Path, servers: Sequence[Hub], address: str) -> None:
        self.folder, self._servers, self._address = folder, servers, address
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://{address}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        # pytest's folders are closed to the account that nginx would take.
        user = "user root;\n" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"daemon off;\n{user}worker_processes 1;\npid {self.folder}/pid;\n"
            f"error_log {self.folder}/error.log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{temporary}{self._example()}}}\n"
        )
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self._process = subprocess.Popen(
            [
                program,
                "-p",
                str(self.folder),
                "-e",
                f"{self.folder}/error.log",
                "-c",
                f"{self.folder}/nginx.conf",
            ],
            stderr=subprocess.DEVNULL,
            # Its processes have a group of their own, by which all of them can be killed.
            process_group=0,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )

    def kill(self) -> None:
        """kill -9 of all its processes; every connection breaks."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _example(self) -> str:
        text = (PROJECT / "docs" / "servers.md").read_text()
        (block,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
        lines = "\n".join(
            f"    server 127.0.0.1:{server.port} max_fails=1 fail_timeout=2s;" for server in self._servers
        )
        block = re.sub(r"    server 10\.0\.0\.11.*?\n    server 10\.0\.0\.12.*?\n", f"{lines}\n", block)
        block = re.sub(r"    ssl_certificate.*\n", "", block)
        block = block.replace("listen 443 ssl", f"listen {self._address}")
        return str(block.replace("hub.example.org", self._address.partition(":")[0]))


class Cutter(threading.Thread):
    """A proxy before the proxy that cuts each connection after some seconds or bytes, whatever it carries."""

    def __init__(self, target: int, after_s: float | None = None, after_bytes: float = math.inf) -> None:
        super().__init__(daemon=True)
        self._target, self._after_s, self._after_bytes = target, after_s, after_bytes
        self.port, self.cut = free_port(), 0
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        self._loop.run_until_complete(asyncio.start_server(self._pass_on, "127.0.0.1", self.port))
        self._loop.run_forever()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(10)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
        ways = [
            asyncio.create_task(_copy(*way, self._after_bytes)) for way in ((reader, ours), (theirs, writer))
        ]
        done, _ = await asyncio.wait(ways, timeout=self._after_s, return_when=asyncio.FIRST_COMPLETED)
        self.cut += not done or any(way.result() for way in done)
        for way in ways:
            way.cancel()
        for end in (writer, ours):
            end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: float) -> bool:
    """Returns whether there was more than so many bytes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            limit -= len(data)
            if limit < 0:
                return True
    return False
