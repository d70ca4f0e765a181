from __future__ import annotations

import pytest
from django.test import Client

from tests.people import api_client, client_of, make_viewer


@pytest.fixture
def api(db: None, valkey: str) -> Client:
    """A viewer's program."""
    return api_client(make_viewer())


@pytest.fixture
def viewer(db: None, valkey: str) -> Client:
    """A viewer's browser."""
    return client_of(make_viewer())
