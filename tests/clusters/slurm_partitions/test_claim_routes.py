"""What a job may ask of the hub by its claim code alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.allocations import redemption
from clusters.allocations.claim_codes import claim_code
from clusters.allocations.redemption import Claim, ClaimRefused, ClaimTooEarly
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition

pytestmark = pytest.mark.django_db


def test_the_program_is_for_jobs_of_open_requests() -> None:
    allocation = make_allocation(make_partition(), "a" * 32)
    code = claim_code(allocation.pk)
    assert redemption.is_open(code)
    assert not redemption.is_open(code + "x")
    assert not redemption.is_open("")
    allocation.over_at = timezone.now()
    allocation.save()
    assert not redemption.is_open(code)


def test_a_trouble_counts_only_with_a_claim() -> None:
    allocation = make_allocation(make_partition(), "a" * 32)
    with pytest.raises(ClaimRefused, match="belongs to no open request"):
        redemption.note_trouble(Claim("tha_1_x", 41, 0, "n1"), "Mine.")
    # Slurm does not answer here: nobody is believed.
    with pytest.raises(ClaimTooEarly):
        redemption.note_trouble(Claim(claim_code(allocation.pk), 41, 0, "n1"), "Mine.")
    allocation.refresh_from_db()
    assert not allocation.trouble


def test_an_archive_that_was_never_packed_is_not_there(settings: Settings, tmp_path: Path) -> None:
    from clusters.allocations.node_program import archive_path

    settings.NODE_PROGRAMS = tmp_path
    assert archive_path("a" * 64) is None
