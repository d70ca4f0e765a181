"""The migrations that an upgrade applies, and what is said when one of them fails."""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState

from trainhub.upgrade.expand_rules import MigrationEffect, migration_effect


class MigrationFailed(Exception):
    """A migration was not applied. The message names it, the state of the database, and what to do."""


def pending_migrations() -> list[MigrationEffect]:
    """Returns what each migration that is not applied yet means, in their order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    # Applied migrations that a squashed one replaces, and those of newer versions, are not in the graph.
    applied = [key for key in executor.loader.applied_migrations if key in executor.loader.graph.nodes]
    state = executor.loader.project_state(applied) if applied else ProjectState()
    return [migration_effect(migration, state) for migration, _ in plan]


def migrate_database() -> None:
    """Applies all migrations. Raises MigrationFailed."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Exception as error:
        migration = _first_pending()
        if migration is None:
            raise
        raise MigrationFailed(_failure(migration, error)) from error


def _first_pending() -> Migration | None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return plan[0][0] if plan else None


def _failure(migration: Migration, error: Exception) -> str:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    name = f"{migration.app_label}.{migration.name}"
    if getattr(migration, "is_resumable", False):
        return (
            f"The migration {name} failed half-way: {reason}. What it has made stays, and those before it "
            "are applied. Mend the cause and start again: it goes on from there; or start the version before "
            "(docs/upgrade.md)"
        )
    if not migration.atomic:
        return (
            f"The migration {name} failed half-way: {reason}. It is not one transaction, so restore the "
            "backup of before the upgrade (docs/upgrade.md)"
        )
    return (
        f"The migration {name} failed: {reason}. All of it was undone, and those before it are applied. Mend "
        "the cause and start again: it goes on with this migration; or start the version before "
        "(docs/upgrade.md)"
    )
