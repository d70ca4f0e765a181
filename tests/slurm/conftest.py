from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.login import LoginNode
from tests.slurm.people import Person


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Three nodes with accounting, shared by the session: leave them idle."""
    cluster = SlurmCluster()
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def login(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    return LoginNode(slurm, tmp_path_factory.mktemp("login")).start()


@pytest.fixture
def ada(slurm: SlurmCluster) -> Iterator[Person]:
    person = Person(slurm, "ada")
    yield person
    person.leave()


@pytest.fixture
def bo(slurm: SlurmCluster) -> Iterator[Person]:
    person = Person(slurm, "bo")
    yield person
    person.leave()
