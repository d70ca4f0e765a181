"""The rest of the unit tests on PostgreSQL, beside those of `test_postgresql`: in two processes it takes half
of the time."""

from __future__ import annotations

import pytest

from tests.platform.postgres import check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "areas", [("workspaces", "clusters", "api"), ("tracking", "mlflow", "registry")], ids="-".join
)
def test_they_hold_on_postgresql_too(postgresql: str, areas: tuple[str, ...]) -> None:  # noqa: F811
    check_areas(postgresql, *areas)
