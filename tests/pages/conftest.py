from __future__ import annotations

import pytest

from jobs.node_api import node_assignments, reports
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    """The contributor whose runs the pages show."""
    return principal_of(make_contributor())


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    """What the last test's process remembered must not meet the new rows."""
    node_assignments.restart()
    reports.restart()
