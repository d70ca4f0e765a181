"""A PostgreSQL of its own for a test module, and the unit tests on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.hub import PROJECT, eventually, free_port

# Whether all unit tests run there, or those that depend on the database most.
IS_WHOLE = os.environ.get("TRAINHUB_TEST_POSTGRESQL") == "all"
MARKED = "not slow and not mpi and not frameworks and not browser and not gpu"


def binary(name: str) -> str:
    found = [*sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    path = str(found[0]) if found else shutil.which(name)
    assert path, "PostgreSQL is not installed; .ci/system-packages installs it"
    return path


def as_postgres(*argv: str) -> list[str]:
    """PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return list(argv)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *argv]


class PostgresServer:
    """A server on a free port with a folder of its own, from `with` to its end. It can be stopped between."""

    def __init__(self) -> None:
        self._port = free_port()
        self._folder = Path("/tmp") / f"trainhub-postgresql-{os.getpid()}-{self._port}"
        self.url = f"postgres://hub@127.0.0.1:{self._port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        self._folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        data = str(self._folder / "data")
        make = as_postgres(binary("initdb"), "-D", data, "-U", "hub", "-A", "trust", "-N")
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        port, folder = str(self._port), str(self._folder)
        options = ["-D", f"{folder}/data", "-p", port, "-k", folder, "-c", "fsync=off"]
        command = as_postgres(binary("postgres"), *options, "-c", "listen_addresses=127.0.0.1")
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        ready = [binary("pg_isready"), "-h", "127.0.0.1", "-p", port, "-q"]
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0, what="PostgreSQL answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(20)
            self._process = None

    def new_database(self, name: str) -> str:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url.rpartition('/')[0]}/{name}"

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the server for connections that are made from now on."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def end_connections(self, own: Sequence[psycopg.Connection[tuple[Any, ...]]] = ()) -> None:
        """Ends all connections but `own`, of which the first is used for it: there may be no other left."""
        pids = [connection.info.backend_pid for connection in own]
        connection = own[0] if own else psycopg.connect(self.url, autocommit=True)
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() AND pid <> ALL (%s)",
            (pids,),
        )
        if not own:
            connection.close()

    def take_all_connections(self) -> list[psycopg.Connection[tuple[Any, ...]]]:
        """Connects until the server refuses."""
        connections: list[psycopg.Connection[tuple[Any, ...]]] = []
        with suppress(psycopg.OperationalError):
            while True:
                connections.append(psycopg.connect(self.url, autocommit=True))
        return connections


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a server that is gone with the module."""
    with PostgresServer() as server:
        yield server.url


def check_areas(postgresql: str, *areas: str) -> None:
    """The unit tests of these folders and files of tests/ hold on that server too."""
    folders = [f"tests/{name}" for name in areas]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKED, *folders]
    env = {**os.environ, "TRAINHUB_TEST_DATABASE_URL": postgresql}
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
