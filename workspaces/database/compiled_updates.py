"""Updates whose SQL is built once in the life of a process, for the way of a run and the reports of nodes.

`QuerySet.update` builds its SQL anew each time, which takes longer than the database needs for it
(`workspaces.database.compiled_queries`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, models, transaction


def update_rows(model: type[models.Model], where: Mapping[str, object], **values: object) -> int:
    """Sets `values` in the rows whose fields in `where` have these values, and returns how many these are.

    Both name fields by attribute, as `run_id`, or "pk". As with `QuerySet.update`, nothing is saved for other
    fields. Raises TypeError for None in `where`, which no row would equal."""
    if None in where.values():
        raise TypeError("update_rows compares with values, not with None")
    connection = connections[DEFAULT_DB_ALIAS]
    sql, set_fields, where_fields = _statement(connection.vendor, model, tuple(values), tuple(where))
    parameters = [
        *(
            field.get_db_prep_save(value, connection)
            for field, value in zip(set_fields, values.values(), strict=True)
        ),
        *(
            field.get_db_prep_value(value, connection)
            for field, value in zip(where_fields, where.values(), strict=True)
        ),
    ]
    with transaction.mark_for_rollback_on_error(DEFAULT_DB_ALIAS), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


@functools.cache
def _statement(
    vendor: str,  # noqa: ARG001 - kinds of databases quote names differently
    model: type[models.Model],
    values: tuple[str, ...],
    where: tuple[str, ...],
) -> tuple[str, list[models.Field[Any, Any]], list[models.Field[Any, Any]]]:
    set_fields, where_fields = (
        [_field(model, name) for name in values],
        [_field(model, name) for name in where],
    )
    assignments, conditions = _equations(set_fields, ", "), _equations(where_fields, " AND ")
    table = connections[DEFAULT_DB_ALIAS].ops.quote_name(model._meta.db_table)
    # All names come from models.
    return f"UPDATE {table} SET {assignments} WHERE {conditions}", set_fields, where_fields  # noqa: S608


def _equations(fields: list[models.Field[Any, Any]], separator: str) -> str:
    quote = connections[DEFAULT_DB_ALIAS].ops.quote_name
    return separator.join(f"{quote(field.column or '')} = %s" for field in fields)


def _field(model: type[models.Model], name: str) -> models.Field[Any, Any]:
    fields: dict[str, models.Field[Any, Any]] = {
        field.attname: field for field in model._meta.concrete_fields
    }
    field = model._meta.pk if name == "pk" else fields.get(name)
    if field is None:
        raise FieldDoesNotExist(f"{model.__name__} has no column of the attribute {name!r}")
    return field
