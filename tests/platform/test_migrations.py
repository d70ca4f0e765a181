"""The squashed migrations, which a new installation begins with, make what the original ones make, and older
installations go on with the original ones."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader

from tests import migrated
from tests.platform.original_migrations import OriginalMigrations

APPS = {"workspaces", "clusters", "environments", "jobs", "tracking", "registry"}
OLDER = ("jobs.0015_own_prepared_environments", "tracking.0004_panel_layout", "registry.0003_scan_rules")
"""What they depend on belongs to it: no app has all of its original migrations then."""


def run(data_dir: Path, *arguments: str) -> None:
    env = {
        **os.environ,
        "DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "trainhub.settings",
    }
    subprocess.run([sys.executable, *arguments], cwd=migrated.PROJECT, env=env, check=True, timeout=300)


def definitions(sql: str) -> list[str]:
    """The columns and constraints of a CREATE TABLE, sorted: SQLite moves an altered column to the end."""
    parts, depth = [""], 0
    for sign in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return sorted(part.strip() for part in parts)


def schema(database: sqlite3.Connection) -> dict[str, list[str]]:
    """The definitions of each table, and each index, by name."""
    rows = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: definitions(sql) if kind == "table" else [sql] for kind, name, sql in rows}


def applied(database: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(database.execute("SELECT app, name FROM django_migrations"))


def test_the_squashed_migrations_describe_the_models_of_the_original_ones() -> None:
    squashed = MigrationLoader(None)
    assert {app for app, _ in squashed.replacements} == APPS
    before, after = OriginalMigrations(None).project_state(), squashed.project_state()
    assert MigrationAutodetector(before, after).changes(squashed.graph) == {}


@pytest.mark.slow
def test_an_older_database_goes_on_with_the_original_migrations_to_the_schema_of_a_new_one(
    tmp_path: Path,
) -> None:
    older, new = tmp_path / "older", tmp_path / "new"
    older.mkdir()
    run(older, "-m", "tests.platform.original_migrations", *OLDER)
    migrated.put_into(new)
    with (
        closing(sqlite3.connect(older / migrated.NAME)) as database,
        closing(sqlite3.connect(new / migrated.NAME)) as fresh,
    ):
        for squashed in MigrationLoader(None).replacements.values():
            steps = set(squashed.replaces) & applied(database)
            assert 0 < len(steps) < len(squashed.replaces), squashed
        database.execute(
            "INSERT INTO workspaces_workspace (slug, name, created_at, last_run_number) "
            "VALUES ('vision', 'Vision', '2026-11-20', 7)"
        )
        database.commit()
        run(older, "manage.py", "migrate", "--verbosity", "0", "--skip-checks")
        assert schema(database) == schema(fresh)
        assert applied(database) == applied(fresh)
        workspaces = database.execute("SELECT slug, last_run_number FROM workspaces_workspace")
        assert workspaces.fetchall() == [("vision", 7)]
