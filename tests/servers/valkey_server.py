"""A Valkey at a port, which can be killed, stopped for a while and emptied."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.hub import eventually, free_port
from trainhub.up.children import end_with_parent
from trainhub.up.valkey import _binary


@contextmanager
def another_valkey() -> Iterator[str]:
    """Yields the address of a further one."""
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        server.start()
        try:
            yield server.url
        finally:
            server.stop()


class ValkeyServer:
    """It keeps nothing on its disk: when it is killed, all messages in it are gone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._folder.mkdir(exist_ok=True)
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder))
        self._process = subprocess.Popen(
            [str(_binary()), *options],
            stdout=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )
        eventually(self._answers, 20, "Valkey answers")

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(20)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def flush(self) -> None:
        """Empties it: no message and no subscription's name is left."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
