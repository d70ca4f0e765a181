from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.backends.slurm.script import WarningSignal
from tests.slurm.cluster import SlurmCluster
from tests.slurm.people import Person
from tests.slurm.rest.rest_host import RestHost
from tests.slurm.rest.rest_hub import RestHub


@pytest.fixture(scope="session")
def rest(slurm: SlurmCluster) -> RestHost:
    return RestHost(slurm).start()


@pytest.fixture(scope="session")
def minute(slurm: SlurmCluster, rest: RestHost) -> tuple[Person, int]:
    """As the fixture of this name that asks by commands."""
    person = Person(slurm, "ada", rest.client("ada"))
    task = "trap 'echo warned' USR1; while :; do sleep 0.2; done"
    job = person.submit(
        f'srun --output=/tmp/warned-%j sh -c "{task}"',
        partition="short",
        time_limit_s=60,
        warning=WarningSignal("USR1", 40),
    )
    person.until(job, "RUNNING")
    return person, job


@pytest.fixture
def ada(slurm: SlurmCluster, rest: RestHost) -> Iterator[Person]:
    person = Person(slurm, "ada", rest.client("ada"))
    yield person
    person.leave()


@pytest.fixture
def bo(slurm: SlurmCluster, rest: RestHost) -> Iterator[Person]:
    person = Person(slurm, "bo", rest.client("bo"))
    yield person
    person.leave()


@pytest.fixture(scope="module")
def slurm_hub(rest: RestHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestHub]:
    """In place of the one that runs commands."""
    hub = RestHub(rest, tmp_path_factory.mktemp("rest hub"))
    try:
        yield hub.start()
    finally:
        hub.stop()
