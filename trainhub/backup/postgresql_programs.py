"""pg_dump and pg_restore for the configured database."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from django.db import connection
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from trainhub.backup.errors import BackupError
from trainhub.backup.file_copy import BLOCK_BYTES, CopiedFile

# Where Debian and Ubuntu put each version; the PATH often has an older one.
_VERSIONED = Path("/usr/lib/postgresql")
_VERSION = re.compile(r"\b(\d+)(?:\.\d+)*\b")
_CUSTOM_FORMAT = "--format=custom"


def server_version() -> str:
    """Returns the server's version, like 16.4."""
    number = connection.cursor().connection.info.server_version  # 160004
    return f"{number // 10_000}.{number % 10_000}"


def dump_database(target: Path) -> CopiedFile:
    """Writes the database with pg_dump in its custom format: one moment of it, while others go on writing.
    Raises BackupError."""
    command = [find_program("pg_dump"), _CUSTOM_FORMAT, "--no-owner", "--no-acl", "--no-password"]
    digest, size = hashlib.sha256(), 0
    with (
        tempfile.TemporaryFile() as errors,
        target.open("xb") as file,
        subprocess.Popen(
            [*command, f"--dbname={_address()}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
        ) as process,
    ):
        try:
            while block := _output(process).read(BLOCK_BYTES):
                file.write(block)
                digest.update(block)
                size += len(block)
        except BaseException:
            process.kill()
            raise
        if process.wait():
            errors.seek(0)
            reason = errors.read().decode(errors="replace").strip()
            raise BackupError(f"pg_dump could not copy the database: {reason}.")
    return CopiedFile(size, digest.hexdigest(), time.time_ns())


def restore_database(source: Path) -> None:
    """Writes a dump into the empty database, all of it or nothing. Raises BackupError."""
    options = ["--no-owner", "--no-acl", "--no-password", "--single-transaction", "--exit-on-error"]
    done = subprocess.run(
        [find_program("pg_restore"), *options, f"--dbname={_address()}", str(source)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=_environment(),
        check=False,
    )
    if done.returncode:
        raise BackupError(f"pg_restore could not write the database: {done.stderr.strip()}.")


def find_program(name: str) -> str:
    """Returns the newest program of that name. Raises BackupError if there is none, or if it is older than
    the server."""
    candidates = [*map(str, _VERSIONED.glob(f"*/bin/{name}")), shutil.which(name)]
    versions = {path: _program_version(path) for path in candidates if path}
    server = int(server_version().partition(".")[0])
    remedy = (
        f"Install the client programs of PostgreSQL {server} or newer on this machine (Debian and Ubuntu: "
        f"apt install postgresql-client-{server}), and have {name} in the PATH."
    )
    if not versions:
        raise BackupError(f"{name} is not installed. {remedy}")
    newest = max(versions, key=lambda path: versions[path])
    if versions[newest] < server:
        raise BackupError(
            f"{newest} is of version {versions[newest]}, older than the server's {server}. {remedy}"
        )
    return newest


def _program_version(path: str) -> int:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    version = _VERSION.search(done.stdout)
    return int(version.group(1)) if version else 0


def _address() -> str:
    """Returns the address of the database for libpq, without the password: others may see arguments."""
    parameters = connection.get_connection_params()
    keywords = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"password"}
    return make_conninfo("", **{name: value for name, value in parameters.items() if name in keywords})


def _environment() -> dict[str, str]:
    password = str(connection.settings_dict.get("PASSWORD") or "")
    return {**os.environ, **({"PGPASSWORD": password} if password else {})}


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    return process.stdout
