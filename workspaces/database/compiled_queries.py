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

import copy
import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models.query import ModelIterable, QuerySet

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
        self._queryset = function(*marks)
        self._compiler = self._queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        self._sql, self._parameters = self._compiler.as_sql()
        # What turns the values of each column into those of its field; Django looks it up for each execution.
        columns = self._compiler.select[: self._compiler.col_count]
        self._converters = self._compiler.get_converters([column for column, *_ in columns])
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

    def rows(self, arguments: tuple[object, ...]) -> list[Any]:
        connection = connections[DEFAULT_DB_ALIAS]
        values = [
            connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
            for value in arguments
        ]
        parameters = tuple(
            constant if place is None else values[place]
            for place, constant in zip(self._places, self._parameters, strict=True)
        )
        # What the compiler knows about columns and joins is the same for each call; threads share it.
        compiler = copy.copy(self._compiler)
        compiler.connection = connection
        compiler.as_sql = lambda *_, **__: (self._sql, parameters)
        compiler.get_converters = lambda _: self._converters
        if self._queryset._iterable_class is not ModelIterable:
            return list(compiler.results_iter(tuple_expected=True))
        # As a QuerySet does it, which would build the query anew.
        query = SimpleNamespace(get_compiler=lambda using: compiler)  # noqa: ARG005 - the name is Django's
        source = SimpleNamespace(db=DEFAULT_DB_ALIAS, query=query, _known_related_objects={})
        return list(ModelIterable(source))  # type: ignore[arg-type]


def compiled(function: Callable[P, QuerySet[Any, T]]) -> Callable[P, list[T]]:
    """Returns a function that answers with the rows of the query: instances, or tuples for `values_list`.

    Its arguments are numbers, texts and times, by position. Raises TypeError for others, such as None, for
    which Django would build other SQL."""
    by_vendor: dict[str, _Compiled] = {}

    @functools.wraps(function)
    def rows(*args: P.args, **kwargs: P.kwargs) -> list[T]:
        if kwargs or not all(type(value) in (int, str, datetime) for value in args):
            raise TypeError(f"{function.__qualname__} takes numbers, texts and times, by position")
        vendor = connections[DEFAULT_DB_ALIAS].vendor
        query = by_vendor.get(vendor)
        if query is None:
            # Two threads may compile it at once, to the same.
            query = by_vendor[vendor] = _Compiled(function, args)
        return query.rows(args)

    return rows


def _mark(argument: object, index: int) -> object:
    if isinstance(argument, str):
        return f"{MARKED_TEXT}{index}"
    return MARKED_TIME + timedelta(days=index) if isinstance(argument, datetime) else MARKED_NUMBER + index
