"""Copies the hub's database at one moment while the hub works, and writes such a copy into an empty one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from trainhub.backup import postgresql_programs
from trainhub.backup.errors import BackupError
from trainhub.backup.file_copy import CopiedFile, copy_file, hash_file, make_folder

FILES = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}


def kind() -> str:
    """Returns "sqlite" or "postgresql"."""
    return connection.vendor


def version() -> str:
    return postgresql_programs.server_version() if kind() == "postgresql" else sqlite3.sqlite_version


def description() -> str:
    """Returns the name of the configured database for messages, without its password."""
    name = connection.settings_dict["NAME"]
    return (
        f"the database {name} on {connection.settings_dict['HOST']}" if kind() == "postgresql" else str(name)
    )


def sqlite_files() -> tuple[Path, ...]:
    """Returns the files of SQLite's database, also those that need not exist; none with PostgreSQL."""
    if kind() != "sqlite":
        return ()
    return tuple(Path(f"{_sqlite_file()}{suffix}") for suffix in ("", "-wal", "-shm", "-journal"))


def tables() -> list[str]:
    """Returns the tables of the configured database; none if it does not exist yet (SQLite)."""
    if kind() == "sqlite" and not _sqlite_file().exists():
        return []
    return connection.introspection.table_names()


def applied_migrations() -> list[str]:
    """Returns the migrations of the configured database, as app.name."""
    return sorted(".".join(key) for key in MigrationRecorder(connection).applied_migrations())


def own_migrations() -> set[str]:
    """Returns the migrations that this version of TrainHub has, as app.name."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return {".".join(key) for key in {*loader.disk_migrations, *replaced}}


def copy_database(folder: Path) -> tuple[str, CopiedFile]:
    """Copies the database into the folder of a backup; returns the file's name and facts. Raises
    BackupError."""
    name = FILES[kind()]
    if kind() == "postgresql":
        return name, postgresql_programs.dump_database(folder / name)
    try:
        _copy_sqlite(folder / name)
    except sqlite3.Error as error:
        raise BackupError(
            f"{_sqlite_file()} could not be copied to {folder}: {error}. Check that disk and its free space."
        ) from error
    return name, hash_file(folder / name)


def write_database(source: Path, sha256: str) -> None:
    """Makes a verified copy the configured database, which is empty. Raises BackupError."""
    connection.close()
    if kind() == "postgresql":
        postgresql_programs.restore_database(source)
        return
    target = _sqlite_file()
    make_folder(target.parent)
    aside = target.with_name(f".{target.name}.restored")
    aside.unlink(missing_ok=True)
    if copy_file(source, aside).sha256 != sha256:
        aside.unlink()
        raise BackupError(f"{source} changed while it was read. Check its disk, and try again.")
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    aside.replace(target)


def _copy_sqlite(target: Path) -> None:
    address = f"file:{quote(str(_sqlite_file()))}?mode=rw"
    with (
        closing(sqlite3.connect(address, uri=True)) as live,
        closing(sqlite3.connect(target)) as copy,
    ):
        # Nothing counts before the manifest, and everything is on the disk before that.
        copy.execute("PRAGMA synchronous=OFF")
        # All pages in one step: it reads one moment and nobody waits for it. In several steps it would begin
        # anew after each write of the hub.
        live.backup(copy)
        # Otherwise whoever opens the copy makes two more files beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
    target.chmod(0o600)


def _sqlite_file() -> Path:
    return Path(str(connection.settings_dict["NAME"]))
