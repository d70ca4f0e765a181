"""Migration operations that add an index to a large table while the hub goes on writing it.

They run outside of a transaction (`atomic = False`), and can be repeated: what an interrupted one left behind
is removed first, and what is there already stays. A migration of them says so by `is_resumable = True`."""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex
from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.migrations.state import ProjectState

log = logging.getLogger(__name__)


class AddLargeIndex(AddIndex):
    """As AddIndex, but on PostgreSQL nobody who writes the table waits."""

    atomic = False

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            if not self._is_there(schema_editor, model._meta.db_table):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif not is_complete(schema_editor, self.index.name):
            self._editor(schema_editor).add_index(model, self.index, concurrently=True)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        else:
            model = from_state.apps.get_model(app_label, self.model_name)
            self._editor(schema_editor).remove_index(model, self.index, concurrently=True)

    def _is_there(self, schema_editor: BaseDatabaseSchemaEditor, table: str) -> bool:
        with schema_editor.connection.cursor() as cursor:
            return self.index.name in schema_editor.connection.introspection.get_constraints(cursor, table)

    @staticmethod
    def _editor(schema_editor: BaseDatabaseSchemaEditor) -> Any:
        # The argument `concurrently` is only that of PostgreSQL's editor.
        return schema_editor


class AddPostgresqlIndex(Operation):
    """Adds an index that only PostgreSQL has: `definition` is what follows `ON` in CREATE INDEX. Other
    databases get none, and models know nothing of it.

    `extension`: what the index needs; the owner of a database may create those that are trusted. Where that
    is refused, or the extension is not installed, the index is left out and a warning says so: what it serves
    is slower then, and docs/limits.md says how to add it later."""

    category = OperationCategory.ADDITION
    reversible = True
    atomic = False

    def __init__(self, name: str, definition: str, extension: str = "") -> None:
        self.name, self.definition, self.extension = name, definition, extension

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Leaves the models as they are."""

    def database_forwards(
        self,
        app_label: str,  # noqa: ARG002 - the parameters are Django's
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,  # noqa: ARG002
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        if not is_complete(schema_editor, self.name):
            if self.extension and not _has_extension(schema_editor, self.extension):
                return
            schema_editor.execute(f"CREATE INDEX CONCURRENTLY {self.name} ON {self.definition}")
        # Without statistics of the index's expression PostgreSQL may go on reading the whole table. An
        # interrupted migration may have made the index and no more.
        schema_editor.execute(f"ANALYZE {self.definition.partition(' ')[0]}")

    def database_backwards(
        self,
        app_label: str,  # noqa: ARG002
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,  # noqa: ARG002
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}")

    def describe(self) -> str:
        return f"Create index {self.name} on PostgreSQL"


def _has_extension(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    """Returns whether the database has the extension now; makes it if it may."""
    try:
        schema_editor.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
    except DatabaseError as error:
        log.warning(
            "Searches for parts of names will read all runs, as PostgreSQL does not make the extension "
            "%s: %s. docs/limits.md says how to add it later.",
            name,
            str(error).strip().partition("\n")[0],
        )
        return False
    return True


def is_complete(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    """Returns whether the index is there; removes one that was left half-made."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        row = cursor.fetchone()
    if row is None or row[0]:
        return row is not None
    schema_editor.execute(f"DROP INDEX CONCURRENTLY {name}")
    return False
