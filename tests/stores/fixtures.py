"""The server of S3's protocol as a fixture. tests/conftest.py offers it to all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.stores.s3_server import S3Server


@pytest.fixture
def s3_server(settings: Any) -> Iterator[S3Server]:
    """A store on this machine, which the hub may connect to here."""
    settings.IS_ON_LOOPBACK_ONLY, settings.OWN_PORTS = True, set()
    server = S3Server()
    yield server
    server.close()
