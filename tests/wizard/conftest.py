from __future__ import annotations

import pytest
from django.test import Client

from clusters.models import Node
from tests.jobs.builders import node
from tests.people import client_of, make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def client(who: Principal) -> Client:
    return client_of(who.user)


@pytest.fixture
def ready(db: None) -> Node:
    """One ready node of 8 slots and 2 GPUs."""
    return node("alpha", slots=8, gpus=2)
