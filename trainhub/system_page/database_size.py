"""The size of the hub's database."""

from __future__ import annotations

from django.db import connection


def database_bytes() -> int | None:
    """Returns the bytes of the database with its indexes; None where it does not say."""
    questions = {
        "postgresql": "SELECT pg_database_size(current_database())",
        "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    }
    with connection.cursor() as cursor:
        cursor.execute(questions[connection.vendor])
        row = cursor.fetchone()
    return int(row[0]) if row else None
