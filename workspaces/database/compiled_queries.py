"""Queries whose SQL is built once in the life of a process.

Django builds the SQL of a query anew each time, from its fields, joins and conditions. For small queries
that takes several times as long as the database's answer, and was half of the CPU time of a run. The queries
on the way of a run, and of each report of a node, are therefore functions with the decorator `compiled`:

    @compiled
    def open_attempts(run_id: str, number: int) -> QuerySet[Attempt]:
        return Attempt.objects.filter(run_id=run_id, number=number, ended_at=None)

    attempts = open_attempts(run.pk, run.attempt)  # a list

The function is called once, with marks in place of its arguments, and must pass each of them on as a value
of a condition; it must not decide anything by them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.query import ModelIterable, QuerySet

from workspaces.database.row_instances import instance_maker

AnyQuerySet = QuerySet[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")
# Marks stand for arguments until the query is compiled. They are values that the columns could have: a number
# beyond the range of its column would make Django leave out the query.
MARKED_NUMBER, MARKED_TIME, MARKED_TEXT = 1_987_650_000, datetime(1971, 3, 5, tzinfo=UTC), "compiled-query-"


class _Compiled:
    """The SQL of one query for one kind of database. `places`: the index of the argument for each parameter,
    None for constants."""

    def __init__(self, function: Callable[..., AnyQuerySet], arguments: tuple[object, ...]) -> None:
        marks = [_mark(argument, index) for index, argument in enumerate(arguments)]
        queryset = function(*marks)
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        self._sql, self._parameters = compiler.as_sql()
        # DISTINCT adds the columns of the order at the end of each row.
        self._columns = compiler.col_count if compiler.has_extra_select else None
        # What turns the values of each column into those of its field; Django looks it up for each execution.
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        self._converters = [(place, *how) for place, how in compiler.get_converters(columns).items()]
        self._annotations = tuple((compiler.annotation_col_map or {}).items())
        self._makes_instances = queryset._iterable_class is ModelIterable
        if self._makes_instances:
            self._make = instance_maker(compiler.klass_info, compiler.select)
        operations = connections[DEFAULT_DB_ALIAS].ops
        # SQLite's adapter turns times into text.
        # Parameters may be lists, which cannot be members of a set.
        forms = [
            (mark, operations.adapt_datetimefield_value(mark) if isinstance(mark, datetime) else mark)
            for mark in marks
        ]
        self._places = [
            next((index for index, form in enumerate(forms) if parameter in form), None)
            for parameter in self._parameters
        ]
        missing = set(range(len(marks))) - set(self._places)
        if missing:
            raise TypeError(f"{function.__qualname__} does not pass its argument {min(missing)} on")

    def rows(self, connection: BaseDatabaseWrapper, arguments: tuple[object, ...]) -> list[Any]:
        values: list[Any] = [
            connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
            for value in arguments
        ]
        parameters = tuple(
            constant if place is None else values[place]
            for place, constant in zip(self._places, self._parameters, strict=True)
        )
        with connection.cursor() as cursor:
            cursor.execute(self._sql, parameters)
            rows = cursor.fetchall()
        if self._columns is not None:
            rows = [row[: self._columns] for row in rows]
        if self._converters:
            rows = [self._converted(row, connection) for row in rows]
        return [self._instance(row) for row in rows] if self._makes_instances else rows

    def _converted(self, row: Sequence[Any], connection: BaseDatabaseWrapper) -> tuple[Any, ...]:
        values = list(row)
        for place, converters, column in self._converters:
            for convert in converters:
                values[place] = convert(values[place], column, connection)
        return tuple(values)

    def _instance(self, row: Sequence[Any]) -> Model | None:
        instance = self._make(row)
        for name, place in self._annotations:
            setattr(instance, name, row[place])
        return instance


def compiled(function: Callable[P, QuerySet[Any, T]]) -> Callable[P, list[T]]:
    """Returns a function that answers with the rows of the query: instances, or tuples for `values_list`.

    Its arguments are numbers, texts and times, by position. Raises TypeError for others, such as None, for
    which Django would build other SQL."""
    by_vendor: dict[str, _Compiled] = {}

    @functools.wraps(function)
    def rows(*args: P.args, **kwargs: P.kwargs) -> list[T]:
        if kwargs or not all(type(value) in (int, str, datetime) for value in args):
            raise TypeError(f"{function.__qualname__} takes numbers, texts and times, by position")
        connection = connections[DEFAULT_DB_ALIAS]
        query = by_vendor.get(connection.vendor)
        if query is None:
            # Two threads may compile it at once, to the same.
            query = by_vendor[connection.vendor] = _Compiled(function, args)
        return query.rows(connection, args)

    return rows


def _mark(argument: object, index: int) -> object:
    if isinstance(argument, str):
        return f"{MARKED_TEXT}{index}"
    return MARKED_TIME + timedelta(days=index) if isinstance(argument, datetime) else MARKED_NUMBER + index
