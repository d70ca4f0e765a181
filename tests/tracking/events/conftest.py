from __future__ import annotations

import pytest

from clusters.node_reports import clocks
from jobs.node_api import node_assignments, reports
from tests.people import make_contributor, principal_of
from tracking.events import pending_attempts
from tracking.metrics import limits
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    """The contributor who submits."""
    return principal_of(make_contributor())


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    for part in (clocks, node_assignments, reports, limits, pending_attempts):
        part.restart()
