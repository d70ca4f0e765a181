"""A hub's database in PostgreSQL holds what it held in SQLite, whatever stops the move."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import runs
from tests.backup import drill
from tests.backup.hubs import hub_at, refusal
from tests.database_move import databases
from tests.database_move.databases import add_event, add_many_events, empty_database, opened, source_hub
from tests.hub import PROJECT, Hub, eventually
from tests.platform.postgres import postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
EVENT = "FROM workspaces_auditevent WHERE id ="
COMMAND = "migrate-to-postgresql"


def first(url: str, query: str) -> tuple[object, ...]:
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        return connection.execute(query).fetchone() or ()


def test_a_hub_goes_on_on_postgresql(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub, url = hub_at(tmp_path), empty_database(postgresql)
    moved = hub_at(tmp_path, DATABASE_URL=url)
    try:
        hub.start()
        before = drill.fill(hub)
        assert "already runs" in refusal(hub, COMMAND, "--to", url)
        hub.stop()
        report = moved.manage(COMMAND).stdout
        assert "each verified by its hash" in report
        assert "set DATABASE_URL" in report
        refused = hub.manage("up", check=False)
        assert "was moved to the database" in refused.stderr
        old = hub.manage("backup", str(tmp_path / "backups"), check=False)
        assert "trainhub.E003" in old.stderr
        moved.token = hub.token
        moved.start()
        before.check(moved)
        assert moved.manage("secrets", "check").returncode == 0
        assert moved.manage("audit", "verify").returncode == 0
        again = runs.submit(moved, "print('after the move')")
        runs.wait_for(moved, again, "Completed")
    finally:
        hub.stop()
        moved.stop()


def test_values_of_every_kind_arrive(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub, url = source_hub(tmp_path), empty_database(postgresql)
    detail = '{"b": 1e+16, "a": [-0.0, "\\ud83d\\ude00", 1180591620717411303424], "é": "\\t\\\\N"}'
    number = add_event(hub, "tab\tnewline\nbackslash\\N é 😀", detail, "2026-11-29 20:15:00.123456")
    with opened(hub) as connection:
        connection.execute("UPDATE workspaces_auditevent SET position = ? WHERE id = ?", (2**63 - 1, number))
        connection.execute(
            "INSERT INTO workspaces_workspace (slug, name, created_at, last_run_number) "
            "VALUES ('gone', 'gone', '2026-11-29 00:00:00', 0)"
        )
        highest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'workspaces_workspace'")
        seq = highest.fetchone()[0]
        connection.execute("DELETE FROM workspaces_workspace WHERE slug = 'gone'")
    hub.manage(COMMAND, "--to", url)
    row = first(url, f"SELECT actor, at::text, detail->'a'->>1 {EVENT} {number}")
    assert row == ("tab\tnewline\nbackslash\\N é 😀", "2026-11-29 20:15:00.123456+00", "😀")
    assert first(url, "SELECT max(position) FROM workspaces_auditevent") == (2**63 - 1,)
    query = "SELECT nextval(pg_get_serial_sequence('workspaces_workspace', 'id'))"
    assert first(url, query) == (seq + 1,)  # no number is given twice
    assert first(url, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'") == first(
        _migrated(postgresql, tmp_path), "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
    )


def _migrated(server: str, folder: Path) -> str:
    url = empty_database(server)
    hub_at(folder / "fresh", DATABASE_URL=url).manage("migrate", "-v0")
    return url


def test_what_postgresql_refuses_is_named_before_anything_is_copied(
    postgresql: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    hub, url = source_hub(tmp_path), empty_database(postgresql)
    nul = add_event(hub, "a\0b", '{"a": "\\u0000"}')
    sentence = refusal(hub, COMMAND, "--to", url)
    assert f"table workspaces_auditevent, row {nul}, field actor: has a NUL character" in sentence
    assert f"row {nul}, field detail: has an escaped NUL character" in sentence
    assert "--replace-nul" in sentence
    long = add_event(hub, "x" * 151)
    sentence = refusal(hub, COMMAND, "--to", url, "--replace-nul")
    assert f"row {long}, field actor: is longer than 150 characters" in sentence
    assert "NUL" not in sentence
    with opened(hub) as connection:
        connection.execute("UPDATE workspaces_auditevent SET actor = 'x' WHERE id = ?", (long,))
    hub.manage(COMMAND, "--to", url, "--replace-nul")
    query = f"SELECT actor, detail->>'a' {EVENT} {nul}"
    assert first(url, query) == ("a\ufffdb", "\ufffd")


def test_a_killed_move_goes_on_and_finds_what_was_changed_meanwhile(
    postgresql: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    hub, url = source_hub(tmp_path), empty_database(postgresql)
    add_many_events(hub)
    _kill_half_way(hub, url)
    started = hub_at(tmp_path / "other", DATABASE_URL=url).manage("prepare", check=False)
    assert "A move into this database was not completed" in started.stderr
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE workspaces_auditevent SET subject = 'other' WHERE id = 7")
    assert "workspaces_auditevent has other content" in refusal(hub, COMMAND, "--to", url)
    report = hub.manage(COMMAND, "--to", url).stdout
    assert "Going on" in report
    query = "SELECT count(*), min(subject) FROM workspaces_auditevent WHERE subject LIKE 'number %'"
    assert first(url, query) == (databases.MANY, "number 1")
    assert first(url, "SELECT count(*) FROM pg_class WHERE relname LIKE 'trainhub_move%'") == (0,)


@pytest.mark.long
def test_a_move_begins_anew_if_the_hub_has_worked_since(
    postgresql: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    hub, url = source_hub(tmp_path), empty_database(postgresql)
    add_many_events(hub)
    _kill_half_way(hub, url)
    add_event(hub, "later")
    assert "begins anew" in hub.manage(COMMAND, "--to", url).stdout
    query = "SELECT count(*) FROM workspaces_auditevent WHERE actor IN ('later', 'nobody')"
    assert first(url, query) == (databases.MANY + 1,)


def _kill_half_way(hub: Hub, url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", COMMAND, "--to", url],
        cwd=PROJECT,
        env=hub.env,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def is_copied() -> bool:
        try:
            query = "SELECT count FROM trainhub_move_table WHERE name = 'workspaces_auditevent'"
            return int(str((first(url, query) or (0,))[0])) > 0
        except psycopg.errors.UndefinedTable:
            return False

    eventually(is_copied, 120, "a part is copied")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_what_cannot_be_moved_is_refused(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub, url = source_hub(tmp_path), empty_database(postgresql)
    assert "Where to?" in refusal(hub, COMMAND)
    assert "no address of a PostgreSQL database" in refusal(hub, COMMAND, "--to", "sqlite:///x")
    assert "cannot be used" in refusal(hub, COMMAND, "--to", "postgres://hub@127.0.0.1:1/none")
    assert "does not exist" in refusal(hub, COMMAND, "--to", url, "--from", str(tmp_path / "none"))
    text = tmp_path / "text"
    text.write_text("no database" * 1000)
    assert "is no SQLite database" in refusal(hub, COMMAND, "--to", url, "--from", str(text))
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE other (id int)")
    assert "has tables in it" in refusal(hub, COMMAND, "--to", url)
    url = empty_database(postgresql)
    with opened(hub) as connection:
        connection.execute("CREATE TABLE other (id int)")
    assert "--leave-out other" in refusal(hub, COMMAND, "--to", url)
    with opened(hub) as connection:
        connection.execute("INSERT INTO django_migrations VALUES (9999, 'jobs', '9999_later', '2026-11-29')")
    assert "newer TrainHub" in refusal(hub, COMMAND, "--to", url, "--leave-out", "other")
    with opened(hub) as connection:
        connection.execute("DELETE FROM django_migrations WHERE app = 'jobs' AND name LIKE '%reasons'")
        connection.execute("DELETE FROM django_migrations WHERE id = 9999")
    assert "older TrainHub" in refusal(hub, COMMAND, "--to", url, "--leave-out", "other")
