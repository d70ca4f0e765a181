"""The rest of the unit tests on PostgreSQL, beside those of `test_postgresql`: in two processes it takes half
of the time."""

from __future__ import annotations

import pytest

from tests.platform.postgres import check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("areas", "whole"),
    [
        (("api",), ("workspaces", "clusters", "api")),
        (("tracking/search", "tracking/history"), ("tracking", "mlflow", "registry")),
    ],
    ids=("api", "tracking"),
)
def test_they_hold_on_postgresql_too(
    postgresql: str,  # noqa: F811
    areas: tuple[str, ...],
    whole: tuple[str, ...],
) -> None:
    check_areas(postgresql, *areas, whole=whole)
