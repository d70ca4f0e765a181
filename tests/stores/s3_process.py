"""The server of S3's protocol as a process of its own, which a test can kill."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

from tests.hub import PROJECT
from tests.stores.s3_server import S3Server


def contents(count: int, size: int) -> dict[str, bytes]:
    """What it serves: the same in each process."""
    source = random.Random(17)  # noqa: S311 - no secrets
    return {f"2024/{number:02}.bin": source.randbytes(size) for number in range(count)}


class S3Process:
    """Serves `contents` with `rate` bytes a second."""

    def __init__(self, address: str, port: int, count: int, size: int, *, rate: int) -> None:
        self._command = [sys.executable, "-m", "tests.stores.s3_process", address]
        self._command += [str(number) for number in (port, count, size, rate)]
        self.url = f"http://{address}:{port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, cwd=PROJECT, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _main() -> None:
    address, *numbers = sys.argv[1:]
    port, count, size, rate = map(int, numbers)
    # Whoever connects while it starts would otherwise learn that there are no objects.
    server = S3Server(address, port, contents(count, size))
    server.rate = rate
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    _main()
