from __future__ import annotations

import pytest

from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    """The contributor who submits."""
    return principal_of(make_contributor())
