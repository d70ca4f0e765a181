"""Indexes of large tables, which a migration adds while the hub goes on, on PostgreSQL. The tests
of PostgreSQL alone are run by tests/platform/test_postgresql.py."""

from __future__ import annotations

import logging
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.state import ProjectState

from workspaces.migration_operations.large_indexes import AddLargeIndex, AddPostgresqlIndex

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(operation: AddLargeIndex | AddPostgresqlIndex) -> None:
    state = ProjectState.from_apps(apps)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("jobs", editor, state, state)


def is_valid(name: str) -> bool | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        row = cursor.fetchone()
    return None if row is None else bool(row[0])


def operations() -> list[AddLargeIndex | AddPostgresqlIndex]:
    migrations = [
        import_module(f"jobs.migrations.{name}").Migration
        for name in ("0037_large_history", "0039_more_orders")
    ]
    assert not any(migration.atomic for migration in migrations)
    assert all(migration.is_resumable for migration in migrations)
    return [operation for migration in migrations for operation in migration.operations]


def name_of(operation: AddLargeIndex | AddPostgresqlIndex) -> str:
    return operation.index.name if isinstance(operation, AddLargeIndex) else operation.name


def test_may_be_repeated_on_every_database() -> None:
    """A migration that was killed between two of its statements begins again with the first."""
    for operation in operations():
        migrate(operation)


@pytest.mark.postgresql
def test_all_are_there() -> None:
    assert {name_of(operation): is_valid(name_of(operation)) for operation in operations()} == {
        "run_ended": True,
        "run_state_counts": True,
        "run_pinned": True,
        "run_of_cluster": True,
        "run_of_environment": True,
        "run_of_source": True,
        "run_name_parts": True,
        "run_by_name": True,
        "run_lasted": True,
    }


@pytest.mark.postgresql
def test_an_interrupted_migration_goes_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX run_of_cluster")
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid IN "
            "('run_ended'::regclass, 'run_name_parts'::regclass)"
        )
    for operation in operations():
        migrate(operation)
    assert all(is_valid(name_of(operation)) for operation in operations())


@pytest.mark.postgresql
def test_without_the_extension_the_index_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        migrate(AddPostgresqlIndex("no_index", "jobs_run (display_name)", "no_such_extension"))
    assert is_valid("no_index") is None
    assert "docs/limits.md" in caplog.text
