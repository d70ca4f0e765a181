"""A lookup for parts of names that PostgreSQL answers with an index."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField
from django.db.models.lookups import IContains


@CharField.register_lookup
class NameContains(IContains):
    """As `icontains`, for columns with a trigram index. On PostgreSQL, Django's own lookup compares
    UPPER(column), so that such an index does not serve LIKE and ILIKE of filters as well."""

    lookup_name = "name_contains"

    def as_sql(self, compiler: Any, connection: Any) -> Any:  # noqa: ARG002 - the parameters are Django's
        return compiler.compile(IContains(self.lhs, self.rhs))

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        lhs, params = compiler.compile(self.lhs)
        return f"{lhs} ILIKE %s", (*params, f"%{connection.ops.prep_for_like_query(self.rhs)}%")
