"""What attackers try against the hub is refused on PostgreSQL too: those quick tests of `tests/attacks` in
which the database matters. Those of stored bytes only look their rows up, and who may call a route is
decided without it."""

from __future__ import annotations

import pytest

from tests.platform.postgres import check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.attacks]


def test_attacks_fail_on_postgresql_too(postgresql: str) -> None:  # noqa: F811
    check_areas(postgresql, *(f"attacks/{name}" for name in ("parsers", "people")))
