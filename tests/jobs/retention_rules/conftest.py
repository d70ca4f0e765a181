"""An owner whose workspace the tests are about."""

from __future__ import annotations

import pytest

from tests.people import make_owner, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_owner())
