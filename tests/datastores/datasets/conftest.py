"""A person, and a dataset of theirs."""

from __future__ import annotations

import pytest

from datastores.models import Dataset
from tests.datastores.datasets.builders import dataset, ready
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def birds(who: Principal) -> Dataset:
    """Two versions with 20 bytes each."""
    made = dataset(who.workspace)
    ready(made, "a.bin", "b.bin")
    ready(made, "a.bin", "c.bin")
    return made
