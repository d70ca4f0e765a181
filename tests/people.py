"""Four people around one workspace, so that access rules read as a story: owner, contributor, viewer,
stranger.

Builders for any test with a database; fixtures of the same names for `pytest_plugins = ["tests.people"]`.
"""

from __future__ import annotations

import pytest
from django.test import Client

from tests.api.contract import ApiClient
from workspaces.access import Principal, membership_principal
from workspaces.models import Membership, User, Workspace
from workspaces.states import Role
from workspaces.tokens import issue

PASSWORD = "correct horse battery staple"


def make_workspace(slug: str = "default") -> Workspace:
    return Workspace.objects.get_or_create(slug=slug, defaults={"name": slug.title()})[0]


def make_person(name: str, role: Role | None = None, workspace: Workspace | None = None) -> User:
    """A person who can sign in by `client_of`; with a role, a member of `workspace` (the default one)."""
    user, _ = User.objects.get_or_create(username=name)
    if role is not None:
        Membership.objects.update_or_create(
            workspace=workspace or make_workspace(), user=user, defaults={"role": role}
        )
    return user


def make_owner() -> User:
    return make_person("olivia", Role.OWNER)


def make_operator() -> User:
    """An owner who also manages the installation's machines."""
    user = make_owner()
    user.is_operator = True
    user.save(update_fields=["is_operator"])
    return user


def make_contributor() -> User:
    return make_person("carl", Role.CONTRIBUTOR)


def make_viewer() -> User:
    return make_person("vera", Role.VIEWER)


def make_stranger() -> User:
    """Signed in, but a member of nothing here."""
    return make_person("stan")


def principal_of(user: User) -> Principal:
    found = membership_principal(user)
    assert found is not None, f"{user} is a member of no workspace"
    return found


def client_of(user: User | None, *, csrf: bool = False) -> Client:
    """A browser signed in as `user` (None: nobody)."""
    client = Client(enforce_csrf_checks=csrf)
    if user is not None:
        client.force_login(user)
    return client


def token_of(user: User, workspace: Workspace | None = None) -> str:
    return issue(user, workspace or make_workspace(), "test")[1]


def api_client(user: User) -> Client:
    """A program that sends `user`'s token with every request."""
    return ApiClient(headers={"authorization": f"Bearer {token_of(user)}"})


@pytest.fixture
def workspace(db: None) -> Workspace:
    return make_workspace()


@pytest.fixture
def owner(db: None) -> User:
    return make_owner()


@pytest.fixture
def contributor(db: None) -> User:
    return make_contributor()


@pytest.fixture
def viewer(db: None) -> User:
    return make_viewer()


@pytest.fixture
def stranger(db: None) -> User:
    return make_stranger()
