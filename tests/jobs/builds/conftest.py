from __future__ import annotations

import pytest

from tests.jobs.builders import Played, node
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def alpha(db: None) -> Played:
    return Played(node("alpha"))
