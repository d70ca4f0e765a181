from __future__ import annotations

import pytest

from tests.people import PASSWORD, make_contributor
from workspaces.models import User


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.set_password(PASSWORD)
    user.save()
    return user
