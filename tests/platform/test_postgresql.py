"""The same code on PostgreSQL: the unit tests in which the database matters most run again there, all of them
in `make test-postgresql`, and the whole stack starts on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub import Hub
from tests.platform.postgres import IS_WHOLE, check_areas, postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
# Folders and files of tests/, those of an item in one process.
WHOLE = (
    ("jobs",),
    ("workspaces", "clusters", "api"),
    ("tracking", "mlflow", "registry"),
    ("attacks/parsers", "attacks/people", "attacks/access"),
)
MOST = (
    (
        *(f"jobs/scheduling/test_{name}.py" for name in ("queue", "run_actions")),
        "tracking/search",
        "servers/test_leases.py",
        "jobs/test_large_indexes.py",
    ),
)


@pytest.mark.parametrize("areas", WHOLE if IS_WHOLE else MOST, ids=" ".join if IS_WHOLE else ["most"])
def test_unit_tests_hold_on_postgresql_too(postgresql: str, areas: tuple[str, ...]) -> None:  # noqa: F811
    check_areas(postgresql, *areas)


def test_the_whole_stack_runs_on_postgresql(postgresql: str, tmp_path: Path) -> None:  # noqa: F811
    hub = Hub(tmp_path / "data", DATABASE_URL=postgresql)
    try:
        hub.start()
        with hub.client() as client:
            assert client.get("/api/v1/clusters/").status_code == 200
    finally:
        hub.stop()
    assert not list(hub.data_dir.glob("*.sqlite3"))
