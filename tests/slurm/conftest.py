from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.backends.slurm.script import WarningSignal
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hub import SlurmHub
from tests.slurm.login import LoginHost
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
def minute(slurm: SlurmCluster) -> tuple[Person, int]:
    """A job with the shortest time limit that Slurm has, and a warning before. Most tests ask for it, so that
    its minute passes while they run."""
    person = Person(slurm, "ada")
    task = "trap 'echo warned' USR1; while :; do sleep 0.2; done"
    job = person.submit(
        f'srun --output=/tmp/warned-%j sh -c "{task}"',
        partition="short",
        time_limit_s=60,
        warning=WarningSignal("USR1", 40),
    )
    person.until(job, "RUNNING")
    return person, job


@pytest.fixture(scope="session")
def login(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> LoginHost:
    return LoginHost(slurm, tmp_path_factory.mktemp("login")).start()


@pytest.fixture(scope="module")
def slurm_hub(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmHub]:
    hub = SlurmHub(slurm, tmp_path_factory.mktemp("slurm hub"))
    try:
        yield hub.start()
    finally:
        hub.stop()


@pytest.fixture
def ada(slurm: SlurmCluster, minute: tuple[Person, int]) -> Iterator[Person]:
    person = Person(slurm, "ada")
    yield person
    person.leave()


@pytest.fixture
def bo(slurm: SlurmCluster) -> Iterator[Person]:
    person = Person(slurm, "bo")
    yield person
    person.leave()
