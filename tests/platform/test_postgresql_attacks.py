"""What attackers try against the hub is refused on PostgreSQL too: those quick tests of `tests/attacks` in
which the database matters most, and more in `make test-postgresql`. Those of stored bytes only look their
rows up."""

from __future__ import annotations

import pytest

from tests.platform.postgres import check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.attacks]


def test_attacks_fail_on_postgresql_too(postgresql: str) -> None:  # noqa: F811
    check_areas(postgresql, "attacks/parsers", whole=("attacks/parsers", "attacks/people", "attacks/access"))
