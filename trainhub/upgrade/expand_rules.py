"""Whether a hub of the version before can go on while a migration runs and afterwards.

Migrations expand first: a release adds tables and columns that the release before neither knows nor misses.
Only a later release removes what no code uses any more, and says in its migration since when:
`unused_since = "0.2"`. Where a person has judged that an operation does no harm, the migration says why:
`safe_because = "…"`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.special import SeparateDatabaseAndState
from django.db.migrations.state import ProjectState

_HARMLESS = (
    operations.CreateModel,
    operations.AddIndex,
    operations.RemoveIndex,
    operations.RenameIndex,
    operations.RemoveConstraint,
    operations.AlterModelOptions,
    operations.AlterModelManagers,
    operations.AlterModelTableComment,
)
_WIDER = {("CharField", "TextField"), ("IntegerField", "BigIntegerField")}


@dataclass(frozen=True)
class MigrationEffect:
    """What a migration means for the version before. `breaks`: what that one cannot go on with, in words.
    `tables`: the models that are changed, as app.model. `unused_since`, `safe_because`: what the migration
    says about it."""

    name: str
    breaks: tuple[str, ...]
    tables: tuple[tuple[str, str], ...]
    unused_since: str
    safe_because: str

    @property
    def is_expanding(self) -> bool:
        return not self.breaks or bool(self.safe_because)


def migration_effect(migration: Migration, state: ProjectState) -> MigrationEffect:
    """Returns the effect, and applies the migration to `state`, the models before it."""
    breaks: list[str] = []
    tables: dict[tuple[str, str], None] = {}
    app = migration.app_label
    for operation in migration.operations:
        breaks += _breaks(operation, app, state)
        model = getattr(operation, "model_name", None)
        if isinstance(model, str):
            tables[app, model.lower()] = None
        operation.state_forwards(app, state)
    return MigrationEffect(
        f"{app}.{migration.name}",
        tuple(breaks),
        tuple(tables),
        str(getattr(migration, "unused_since", "")),
        str(getattr(migration, "safe_because", "")),
    )


def _breaks(operation: Operation, app: str, state: ProjectState) -> Iterator[str]:
    if isinstance(operation, SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _breaks(inner, app, state)
    elif isinstance(operation, operations.AddField):
        yield from _new_field(operation)
    elif isinstance(operation, operations.AlterField):
        old = state.models[app, operation.model_name_lower].fields[operation.name]
        yield from (
            f"{operation.model_name}.{operation.name} {change}" for change in _changes(old, operation.field)
        )
    elif isinstance(operation, operations.RunPython | operations.RunSQL):
        yield "runs code of its own"
    elif not isinstance(operation, _HARMLESS):
        description = operation.describe()
        yield description[:1].lower() + description[1:]


def _new_field(operation: operations.AddField) -> Iterator[str]:
    field = operation.field
    if not (field.null or field.has_db_default() or field.many_to_many):
        yield (
            f"adds {operation.model_name}.{operation.name}, without which that version writes rows: give it "
            "null=True or a db_default"
        )


def _changes(old: models.Field[object, object], new: models.Field[object, object]) -> Iterator[str]:
    kinds = old.get_internal_type(), new.get_internal_type()
    if kinds[0] != kinds[1] and kinds not in _WIDER:
        yield f"becomes a {kinds[1]}"
    if old.null and not new.null:
        yield "may no longer be empty"
    lengths = getattr(old, "max_length", None), getattr(new, "max_length", None)
    if lengths[1] is not None and kinds[1] != "TextField" and (lengths[0] is None or lengths[1] < lengths[0]):
        yield f"becomes shorter: {lengths[1]}"
    if new.unique and not old.unique:
        yield "becomes unique"
    if old.has_db_default() and not new.has_db_default() and not new.null:
        yield "loses its default in the database"
    if old.related_model is not new.related_model and str(old.related_model) != str(new.related_model):
        yield "refers to another table"
