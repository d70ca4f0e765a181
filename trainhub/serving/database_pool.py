"""The pool of connections to PostgreSQL."""

from __future__ import annotations

from trainhub import env

# Of the web server, some threads keep a connection: those that ingest reports, answer claims, write what was
# reported, and tell other servers that this one lives. With fewer, nothing is left for pages.
MIN_SIZE = 8


def pool_options() -> dict[str, int]:
    """Returns the options of psycopg_pool. A database that is back is tried again after at most 10 s, not
    after twice as long each time."""
    size = env.integer("DATABASE_POOL", 16, least=MIN_SIZE)
    return {"min_size": 1, "max_size": size, "timeout": 20, "reconnect_timeout": 10}
