"""A PostgreSQL of its own for a test module, and the unit tests on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a free port, gone with the module; its URL."""
    folder = Path("/tmp") / f"trainhub-postgresql-{os.getpid()}-{free_port()}"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, port = str(folder / "data"), free_port()
    make = as_postgres(binary("initdb"), "-D", data, "-U", "hub", "-A", "trust", "-N")
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    options = [
        "-D",
        data,
        "-p",
        str(port),
        "-k",
        str(folder),
        "-c",
        "fsync=off",
        "-c",
        "listen_addresses=127.0.0.1",
    ]
    server = subprocess.Popen(as_postgres(binary("postgres"), *options), stderr=subprocess.DEVNULL)
    ready = [binary("pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
    try:
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0, what="PostgreSQL answers")
        yield f"postgres://hub@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        shutil.rmtree(folder)


def check_areas(postgresql: str, *areas: str) -> None:
    """The unit tests of these folders and files of tests/ hold on that server too."""
    folders = [f"tests/{name}" for name in areas]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKED, *folders]
    env = {**os.environ, "TRAINHUB_TEST_DATABASE_URL": postgresql}
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
