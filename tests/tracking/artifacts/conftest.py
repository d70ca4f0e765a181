from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.tracking.artifacts.raw import open_client


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with open_client() as client:
        yield client
