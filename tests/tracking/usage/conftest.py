from __future__ import annotations

import pytest

from clusters.node_reports import clocks
from jobs.node_api import node_assignments, reports
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None, valkey: str) -> Principal:
    """The contributor who submits."""
    return principal_of(make_contributor())


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    clocks.restart()
    node_assignments.restart()
    reports.restart()
