"""A PostgreSQL that can be killed, stopped for a while, and started again on the same data."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.harness import guard
from tests.hosts import processes
from tests.hub import eventually, free_port
from tests.platform.postgres import as_postgres, binary


class Database:
    """`start` makes its data at the first time. `folder` does not exist yet. `options`: further settings of
    the server, such as `archive_mode=on`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self.data = folder / "data"
        self._options = [word for option in options for word in ("-c", option)]
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self.url = f"postgres://hub@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        if not self._folder.exists():
            self._make()
        options = ("-p", str(self._port), "-k", str(self._folder), "-c", "listen_addresses=127.0.0.1")
        # Forced writes belong to what is tried: the server is killed, though never the machine below it.
        command = as_postgres(binary("postgres"), "-D", str(self.data), *options, *self._options)
        self._server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        ready = [binary("pg_isready"), "-h", "127.0.0.1", "-p", str(self._port), "-q"]
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0, 60, "PostgreSQL answers")

    def kill(self) -> None:
        """As at a power cut: no process of it says goodbye."""
        # First stopped, so that no new one begins while they are counted.
        self._signal(signal.SIGSTOP)
        killed = self._signal(signal.SIGKILL)
        assert self._server is not None
        self._server.wait(20)
        eventually(lambda: not any(map(processes.lives, killed)), 20, "all processes of PostgreSQL are gone")
        # What a power cut also takes: the note that a server runs, and its shared memory.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self.resume()
            self._server.send_signal(signal.SIGINT)
            self._server.wait(30)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self) -> None:
        self._folder.mkdir(mode=0o700)
        guard.on_exit("rm", "-rf", str(self._folder))
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        make = as_postgres(binary("initdb"), "-D", str(self.data), "-U", "hub", "-A", "trust", "-N")
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)

    def _signal(self, number: signal.Signals) -> list[int]:
        """To all processes. The first one gets it before those that serve connections, because it would see
        them die and begin anew. Each of these leads a session of its own, so they are in no common group."""
        assert self._server is not None
        pids = [self._server.pid, *processes.children(self._server.pid)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids
