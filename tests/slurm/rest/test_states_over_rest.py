"""The states and reasons of `test_states`, as slurmrestd tells them."""

from __future__ import annotations

import pytest

from clusters.backends.slurm.client import SlurmClient
from tests.slurm import test_states
from tests.slurm.people import Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]


class TestWaiting(test_states.TestWaiting):
    pass


class TestEnds(test_states.TestEnds):
    ada_account = "ada"
    root_account = "root"


class TestInterruptions(test_states.TestInterruptions):
    def impatient_client(self, ada: Person) -> SlurmClient:
        return ada.client


test_a_time_limit_comes_with_a_warning = test_states.test_a_time_limit_comes_with_a_warning
