"""Updates and inserts whose SQL is built once in the life of a process, for the way of a run and the reports
of nodes.

`QuerySet.update` and `create` build their SQL anew each time, which takes longer than the database needs for
it (`workspaces.database.compiled_queries`). Both functions name fields by attribute, as `run_id`, send no
signals, and raise what the database raises."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, models, transaction

Model = type[models.Model]
IS_NULL = object()


def update_rows(model: Model, where: Mapping[str, object], **values: object) -> int:
    """Sets `values` in the rows whose fields in `where` have these values, or one of those in a tuple, or no
    value (IS_NULL), and returns how many these are. "pk" is a field of `where`, too. Raises TypeError for
    None and an empty tuple in `where`, which no row would equal."""
    if None in where.values() or () in where.values():
        raise TypeError("update_rows compares with values, not with None or an empty tuple")
    connection = connections[DEFAULT_DB_ALIAS]
    compared_with = {
        name: value if isinstance(value, tuple) else () if value is IS_NULL else (value,)
        for name, value in where.items()
    }
    counts = tuple((name, len(options)) for name, options in compared_with.items())
    sql, fields, conditions = _update(connection.vendor, model, tuple(values), counts)
    new = [
        field.get_db_prep_save(value, connection)
        for field, value in zip(fields, values.values(), strict=True)
    ]
    compared = [
        field.get_db_prep_value(value, connection)
        for field, options in zip(conditions, compared_with.values(), strict=True)
        for value in options
    ]
    return _execute(sql, new + compared)


def insert_row(model: Model, **values: object) -> None:
    """Adds a row with these values, and the defaults of all other fields. The database makes its key."""
    connection = connections[DEFAULT_DB_ALIAS]
    sql, named_fields, default_fields = _insert(connection.vendor, model, tuple(values))
    new = [
        field.get_db_prep_save(value, connection)
        for field, value in zip(named_fields, values.values(), strict=True)
    ]
    _execute(sql, new + [field.get_db_prep_save(field.get_default(), connection) for field in default_fields])


def _execute(sql: str, parameters: list[Any]) -> int:
    # A transaction that goes on after an error is rolled back, as with Django's own writes.
    with (
        transaction.mark_for_rollback_on_error(DEFAULT_DB_ALIAS),
        connections[DEFAULT_DB_ALIAS].cursor() as cursor,
    ):
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


# Kinds of databases quote names differently: `vendor` is part of what the statements are kept by. All names
# in them come from models.
@functools.cache
def _update(
    vendor: str,  # noqa: ARG001
    model: Model,
    values: tuple[str, ...],
    where: tuple[tuple[str, int], ...],
) -> tuple[str, list[models.Field[Any, Any]], list[models.Field[Any, Any]]]:
    fields, conditions = [_field(model, name) for name in values], [_field(model, name) for name, _ in where]
    new = ", ".join(f"{column} = %s" for column in _columns(fields))
    compared = " AND ".join(
        f"{column} IN ({', '.join(['%s'] * count)})" if count else f"{column} IS NULL"
        for column, (_, count) in zip(_columns(conditions), where, strict=True)
    )
    return f"UPDATE {_table(model)} SET {new} WHERE {compared}", fields, conditions  # noqa: S608


@functools.cache
def _insert(
    vendor: str,  # noqa: ARG001
    model: Model,
    values: tuple[str, ...],
) -> tuple[str, list[models.Field[Any, Any]], list[models.Field[Any, Any]]]:
    named_fields = [_field(model, name) for name in values]
    default_fields = [
        field
        for field in model._meta.concrete_fields
        if field not in named_fields and field is not model._meta.auto_field and not field.has_db_default()
    ]
    columns = list(_columns([*named_fields, *default_fields]))
    marks = ", ".join(["%s"] * len(columns))
    sql = f"INSERT INTO {_table(model)} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
    return sql, named_fields, default_fields


def _table(model: Model) -> str:
    return connections[DEFAULT_DB_ALIAS].ops.quote_name(model._meta.db_table)


def _columns(fields: Iterable[models.Field[Any, Any]]) -> Iterable[str]:
    quote = connections[DEFAULT_DB_ALIAS].ops.quote_name
    return (quote(field.column or "") for field in fields)


def _field(model: Model, name: str) -> models.Field[Any, Any]:
    fields: dict[str, models.Field[Any, Any]] = {
        field.attname: field for field in model._meta.concrete_fields
    }
    field = model._meta.pk if name == "pk" else fields.get(name)
    if field is None:
        raise FieldDoesNotExist(f"{model.__name__} has no column of the attribute {name!r}")
    return field
