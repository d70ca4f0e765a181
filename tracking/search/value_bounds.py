"""Bounds of the first values in an order by logged data, on PostgreSQL.

The index has the values of a key in order within each experiment. Over many experiments PostgreSQL would
read and sort all of them to show fifty. So the first values of each experiment are read, and one of them
bounds the search: it is chosen so that enough rows come before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Model

# The first bound is right if the filter keeps most runs; the second one if it keeps a few of a hundred.
FACTORS = (2, 32)
MAX_VALUES = 20_000
MIN_OF_EXPERIMENT = 10


@dataclass(frozen=True)
class ValueOrder:
    """The values of a key in one direction, in more than one experiment. `null_column`: only rows without a
    value in that column; "" for all."""

    model: type[Model]
    column: str
    key: str
    descending: bool
    experiments: Sequence[int]
    null_column: str = ""

    def bounds(self, count: int) -> Iterator[dict[str, object]]:
        """Yields conditions on rows, each wider than the one before: their rows are the first ones in this
        order, and at least `count`. None on other databases, for few values, and for very many."""
        if connection.vendor != "postgresql" or len(self.experiments) < 2:
            return
        for factor in FACTORS:
            if count * factor > MAX_VALUES:
                return
            first, last, found = self._first_values(count * factor)
            if found < count * factor:
                return
            # Of equal values the newest runs come first, which an equality lets PostgreSQL read in order.
            lookup = "exact" if first == last else "gte" if self.descending else "lte"
            yield {f"{self.column}__{lookup}": last}

    def _first_values(self, count: int) -> tuple[object, object, int]:
        """Returns the first and the last of so many values in the order, and how many there are of them. The
        few first ones of each experiment do, as the result is only a bound."""
        direction = "DESC" if self.descending else "ASC"
        each = min(count, max(MIN_OF_EXPERIMENT, 4 * count // len(self.experiments)))
        table, column = connection.ops.quote_name(self.model._meta.db_table), self.column
        without = f"AND {self.null_column} IS NULL" if self.null_column else ""
        ends = "max(value), min(value)" if self.descending else "min(value), max(value)"
        # The names in it are those of our own tables and columns.
        of_experiment = (
            f"SELECT {column} AS value FROM {table} WHERE experiment_id = experiment.id "  # noqa: S608
            f"AND key = %s AND {column} IS NOT NULL {without} ORDER BY {column} {direction} LIMIT %s"
        )
        firsts = (
            f"SELECT value FROM unnest(%s::bigint[]) AS experiment(id), "  # noqa: S608
            f"LATERAL ({of_experiment}) AS of_experiment ORDER BY value {direction} LIMIT %s"
        )
        query = f"SELECT {ends}, count(*) FROM ({firsts}) AS firsts"  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(query, [list(self.experiments), self.key, each, count])
            first, last, found = cursor.fetchone()
        return first, last, int(found)
