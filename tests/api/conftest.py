from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from tests.jobs import builders
from tests.people import api_client, make_contributor, make_viewer, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def node(db: None) -> Node:
    return builders.node()


@pytest.fixture
def api(db: None, valkey: str) -> Client:
    """A contributor's program."""
    return api_client(make_contributor())


@pytest.fixture
def viewer_api(db: None) -> Client:
    return api_client(make_viewer())


@pytest.fixture
def spec(who: Principal, node: Node) -> dict[str, Any]:
    """A spec that is accepted as it is."""
    return {"source": {"type": "snapshot", "id": builders.snapshot(who).sha256}, "script": "train.py"}
