"""The pool of connections to PostgreSQL."""

from __future__ import annotations

from trainhub import env


def pool_options() -> dict[str, int]:
    """Returns the options of psycopg_pool. A database that is back is tried again after at most 10 s, not
    after twice as long each time."""
    size = env.integer("DATABASE_POOL", 16, least=1)
    return {"min_size": 1, "max_size": size, "timeout": 20, "reconnect_timeout": 10}
