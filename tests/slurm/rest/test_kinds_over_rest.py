"""The contract of `test_kinds`, for a Slurm that is asked by slurmrestd."""

from __future__ import annotations

import pytest

from clusters.kinds import SLURM
from tests.slurm import test_kinds

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def kind() -> str:
    return SLURM


class TestOverRest(test_kinds.TestEveryKind):
    pass
