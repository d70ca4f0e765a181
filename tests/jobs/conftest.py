from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.jobs.raw import opened
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who(db: None) -> Principal:
    """The contributor who submits."""
    return principal_of(make_contributor())


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """The raw routes, without the rest of the front door."""
    async with opened() as raw:
        yield raw
