"""The choice of pg_dump: the newest of this machine, and none that is older than the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainhub.backup import postgresql_programs
from trainhub.backup.errors import BackupError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without programs of PostgreSQL, whose server is of version 16."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(postgresql_programs, "_VERSIONED", tmp_path / "postgresql")
    monkeypatch.setattr(postgresql_programs, "server_version", lambda: "16.4")
    return tmp_path


def install(path: Path, version: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version} (Debian 1.pgdg120+1)'\n")
    path.chmod(0o755)
    return str(path)


def test_none_is_installed(programs: Path) -> None:
    with pytest.raises(BackupError, match=r"pg_dump is not installed.*postgresql-client-16"):
        postgresql_programs.find_program("pg_dump")


def test_it_is_older_than_the_server(programs: Path) -> None:
    install(programs / "bin" / "pg_dump", "15.8")
    with pytest.raises(BackupError, match=r"of version 15, older than the server's 16.*postgresql-client-16"):
        postgresql_programs.find_program("pg_dump")


def test_the_newest_is_taken(programs: Path) -> None:
    install(programs / "bin" / "pg_dump", "15.8")
    newest = install(programs / "postgresql" / "17" / "bin" / "pg_dump", "17.0")
    install(programs / "postgresql" / "9.6" / "bin" / "pg_dump", "9.6.24")
    assert postgresql_programs.find_program("pg_dump") == newest
