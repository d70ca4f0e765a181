from __future__ import annotations

import pytest
from django.test import Client

from jobs.models import Run
from tests.people import api_client, make_viewer
from tests.tracking.builders import logged_run


@pytest.fixture
def api(db: None, valkey: str) -> Client:
    """A viewer's program."""
    return api_client(make_viewer())


@pytest.fixture
def run(db: None) -> Run:
    return logged_run()
