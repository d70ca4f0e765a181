from __future__ import annotations

import pytest

from tests.people import principal_of
from workspaces.bootstrap import ensure_owner
from workspaces.models import User
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def test_a_fresh_installation_gets_one_owner_whose_password_is_told_once() -> None:
    password = ensure_owner()
    assert password is not None
    admin = User.objects.get()
    assert admin.check_password(password)
    assert admin.is_operator
    assert principal_of(admin).role is Role.OWNER
    assert ensure_owner() is None


def test_an_installation_with_people_is_left_alone(viewer: User) -> None:
    assert ensure_owner() is None
    assert list(User.objects.all()) == [viewer]
