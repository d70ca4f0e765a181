from __future__ import annotations

import pytest

from tests.hub import Hub
from tests.journeys.runs import Runs


@pytest.fixture
def runs(hub: Hub) -> Runs:
    return Runs(hub)
