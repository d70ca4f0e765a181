"""A mistake in the database is undone with what PostgreSQL archives, as docs/backup.md says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import runs
from tests.backup.hubs import hub_at
from tests.hub import Hub, free_port
from tests.platform.database import Database
from tests.platform.postgres import as_postgres, binary

pytestmark = [pytest.mark.slow, pytest.mark.long]
WRITES = "for number in range(2000): print('line', number, {word!r})"
MISTAKE = "from jobs.models import Run; Run.objects.all().delete()"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Which PostgreSQL's account can write to."""
    path = Path("/tmp") / f"trainhub-archive-{os.getpid()}-{free_port()}"
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(path, "postgres", "postgres")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    archive = f"archive_command=test ! -f {folder}/%f && cp %p {folder}/%f"
    server = Database(Path(f"{folder}-server"), "archive_mode=on", archive)
    server.start()
    yield server
    server.remove()


def recorded(hub: Hub, word: str) -> tuple[str, bytes]:
    """A run that has ended, and its log."""
    run = runs.submit(hub, WRITES.format(word=word))
    runs.wait_for(hub, run, "Completed")
    return run, runs.log(hub, run)


def now(database: Database) -> str:
    with psycopg.connect(database.url) as connection:
        row = connection.execute("SELECT now()::text, pg_switch_wal()").fetchone()
        assert row is not None
        return str(row[0])


def bring_back(database: Database, base: Path, archive: Path, moment: str) -> None:
    """The server stands still; its data are what they were at that moment."""
    shutil.rmtree(database.data)
    subprocess.run(as_postgres("cp", "-a", str(base), str(database.data)), check=True)
    lines = (
        f"restore_command = 'cp {archive}/%f %p'",
        f"recovery_target_time = '{moment}'",
        "recovery_target_action = promote",
    )
    with (database.data / "postgresql.auto.conf").open("a") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(as_postgres("touch", str(database.data / "recovery.signal")), check=True)


def test_a_mistake_is_undone_and_the_hub_goes_on(tmp_path: Path, folder: Path, database: Database) -> None:
    hub = hub_at(tmp_path, DATABASE_URL=database.url)
    hub.start()
    try:
        before = recorded(hub, "before")
        base = folder / "base"
        subprocess.run(as_postgres(binary("pg_basebackup"), "-D", str(base), "-d", database.url), check=True)
        since = recorded(hub, "since")
        moment = now(database)
        hub.manage("shell", "-c", MISTAKE)
        with hub.client() as client:
            assert not client.get("/api/v1/runs/").json()["results"]
        hub.stop()
        database.stop()
        bring_back(database, base, folder, moment)
        database.start()
        hub.start()
        for run, log in (before, since):
            assert runs.told(hub, run)["state"] == "Completed"
            assert runs.log(hub, run) == log
        recorded(hub, "afterwards")
        hub.manage("audit", "verify")
    finally:
        hub.stop()
