"""A lookup for parts of names that PostgreSQL answers with an index."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField
from django.db.models.lookups import IContains
from django.db.models.sql.compiler import SQLCompiler


@CharField.register_lookup
class NameContains(IContains):
    """As `icontains`, for columns with a trigram index. On PostgreSQL, Django's own lookup compares
    UPPER(column), so that such an index does not serve LIKE and ILIKE of filters as well."""

    lookup_name = "name_contains"

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 - the parameters are Django's
    ) -> tuple[str, tuple[str | int, ...]]:
        sql, params = compiler.compile(IContains(self.lhs, self.rhs))
        return sql, tuple(params)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[str | int, ...]]:
        lhs, params = compiler.compile(self.lhs)
        pattern = connection.ops.prep_for_like_query(str(self.rhs))
        return f"{lhs} ILIKE %s", (*params, f"%{pattern}%")
