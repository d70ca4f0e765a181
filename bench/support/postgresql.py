"""A PostgreSQL of its own for a measurement, on a free port, as a hub in earnest would use it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.idle import cpu_s
from bench.support.stack import free_port


@dataclass
class Database:
    url: str
    pid: int

    def cpu_s(self) -> float:
        """Of the server and all its children, those that have ended too."""
        own = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ended = (int(own[13]) + int(own[14])) / os.sysconf("SC_CLK_TCK")
        children = [
            int(pid)
            for task in Path(f"/proc/{self.pid}/task").glob("*/children")
            for pid in task.read_text().split()
        ]
        return cpu_s(self.pid) + ended + sum(_cpu_or_none(pid) for pid in children)


@contextmanager
def postgresql(keep: Path | None = None, **settings: str) -> Iterator[Database]:
    """`keep`: a folder whose data is used again, and stays; without it the data is new, and removed."""
    with ExitStack() as contexts:
        folder = str(keep or contexts.enter_context(tempfile.TemporaryDirectory(prefix="th-bench-pg-")))
        Path(folder).mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        data, port = f"{folder}/data", free_port()
        if not Path(data).exists():
            subprocess.run(
                _as_postgres("initdb", "-D", data, "-U", "hub", "-A", "trust"),
                check=True,
                stdout=subprocess.DEVNULL,
            )
        options = ["-D", data, "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        for name, value in settings.items():
            options += ["-c", f"{name}={value}"]
        server = subprocess.Popen(_as_postgres("postgres", *options), stderr=subprocess.DEVNULL)
        try:
            while subprocess.run(
                [_binary("pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"], check=False
            ).returncode:
                time.sleep(0.1)
            yield Database(f"postgres://hub@127.0.0.1:{port}/postgres", server.pid)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def _as_postgres(name: str, *arguments: str) -> list[str]:
    """PostgreSQL refuses root."""
    argv = [_binary(name), *arguments]
    return (
        argv if os.geteuid() else ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *argv]
    )


def _binary(name: str) -> str:
    paths = [*sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    path = str(paths[0]) if paths else shutil.which(name)
    if not path:
        raise SystemExit("PostgreSQL is not installed; .ci/system-packages installs it")
    return path


def _cpu_or_none(pid: int) -> float:
    try:
        return cpu_s(pid)
    except FileNotFoundError:
        return 0.0
