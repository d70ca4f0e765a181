"""JSON of SQLite and what PostgreSQL makes of it have one form."""

from __future__ import annotations

import psycopg
import pytest

from tests.platform.postgres import postgresql  # noqa: F401 - a fixture
from trainhub.database_move.json_form import canonical_json, refused_escapes, replace_refused_escapes

VALUES = (
    "null",
    '{"b": 1, "a": [true, "é", "\\u00e9", "\\ud83d\\ude00"]}',
    '{"a": 1, "a": 2}',
    "[1e+16, 1.5e+16, 1e-05, 5e-324, 1.7976931348623157e+308, 1e22]",
    "[-0.0, -0, 0.0, -0.5, 0e0, -1, 1.50, 100.0]",
    "[9223372036854775807, -9223372036854775808, 18446744073709551616, 1180591620717411303424]",
    '{"sha": "5e3-05", "text": ": -0 1e5"}',
    "[" * 300 + "1e3" + "]" * 300,
)


@pytest.mark.slow
@pytest.mark.parametrize("text", VALUES)
def test_a_value_has_the_same_form_on_both_sides(postgresql: str, text: str) -> None:  # noqa: F811
    with psycopg.connect(postgresql) as connection:
        row = connection.execute("SELECT %s::text::jsonb::text", (text,)).fetchone()
    assert row is not None
    assert canonical_json(text) == canonical_json(row[0])


def test_different_values_have_different_forms() -> None:
    assert canonical_json('{"a": 1}') != canonical_json('{"a": "1"}')
    assert canonical_json("[1.0]") != canonical_json("[2.0]")


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (r'"a\u0000b"', r'"a\ufffdb"'),
        (r'"\ud83d!"', r'"\ufffd!"'),
        (r'"\ude00"', r'"\ufffd"'),
        (r'"\ud83d\ud83d\ude00"', r'"\ufffd\ud83d\ude00"'),
        (r'"\ud83d"', r'"\ufffd"'),
    ],
)
def test_what_postgresql_refuses_is_replaced(text: str, mended: str) -> None:
    assert replace_refused_escapes(text) == mended


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\u0000"', r'"\\\\ud83d"', '"plain"'])
def test_what_postgresql_accepts_stays(text: str) -> None:
    assert refused_escapes(text) == []
