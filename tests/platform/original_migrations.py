"""The migrations that the squashed ones replace, as older versions applied them.

As a program it brings a new database to an older point: `python -m tests.platform.original_migrations
jobs.0015_own_prepared_environments`.
"""

from __future__ import annotations

import sys

import django
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


class OriginalMigrations(MigrationLoader):
    """All migrations but the squashed ones. With `replace_migrations=False` Django would load both, and each
    table would be created twice."""

    def load_disk(self) -> None:
        super().load_disk()
        loaded = self.disk_migrations
        last = {key: migration.replaces[-1] for key, migration in loaded.items() if migration.replaces}
        self.disk_migrations = {key: migration for key, migration in loaded.items() if key not in last}
        for migration in self.disk_migrations.values():
            # Each migration has a list of its own, which django-stubs does not know.
            own = [last.get(key, key) for key in migration.dependencies]
            migration.dependencies = own  # type: ignore[misc]


def original_executor(database: BaseDatabaseWrapper) -> MigrationExecutor:
    executor = MigrationExecutor(database)
    executor.loader = OriginalMigrations(database)
    return executor


def main(names: list[str]) -> None:
    django.setup()
    targets = [(app, name) for app, name in (text.split(".") for text in names)]
    original_executor(connection).migrate(targets)


if __name__ == "__main__":
    main(sys.argv[1:])
