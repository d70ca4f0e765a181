"""Checkpoints in a datastore that have files of earlier ones: what may be shared, and what stays then."""

from __future__ import annotations

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.checkpoints import collecting, stores
from jobs.checkpoints.part_files import CheckpointRefused, DeliveredFile, PartDelivery
from jobs.models import Checkpoint, Run
from tests.jobs.builders import Played
from tests.jobs.checkpoints.saving import announce, part_of, states
from tests.jobs.checkpoints.test_stores import DIGEST, VERSION, commits, saving, who
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
__all__ = ["commits", "who"]  # fixtures


class TestSharing:
    FIRST = f"1/{VERSION[:16]}/frozen.bin"

    def save(self, played: Played, run: Run, number: int, *, shares: bool) -> None:
        announce(played, run, f"epoch-{number}", version=f"a{number}")
        frozen = DeliveredFile("frozen.bin", DIGEST, 7, self.FIRST if shares else "")
        delivery = PartDelivery([frozen, DeliveredFile("new.bin", DIGEST, 7)], version=VERSION)
        collecting.deliver(part_of(played, run), number, delivery)

    def test_what_later_ones_have_stays_and_the_rest_is_removed(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = saving(who)
        for number in (1, 2, 3):
            with django_capture_on_commit_callbacks(execute=True):
                self.save(alpha, run, number, shares=number > 1)
        part = part_of(alpha, run)
        assert stores.surplus(part.attempt) == {1: [self.FIRST]}
        stores.note_removed(part, [], "", [1])
        assert states(run) == {"epoch-1": "shared", "epoch-2": "complete", "epoch-3": "complete"}
        assert [row.name for row in Checkpoint.objects.shown(run)] == ["epoch-2", "epoch-3"]
        assert stores.surplus(part.attempt) == {}, "nothing is left to be removed"
        for number in (4, 5):
            with django_capture_on_commit_callbacks(execute=True):
                self.save(alpha, run, number, shares=False)
        assert stores.surplus(part.attempt) == {1: [], 2: [], 3: []}
        stores.note_removed(part, [1, 2, 3], "")
        assert states(run) == {"epoch-4": "complete", "epoch-5": "complete"}

    @pytest.mark.parametrize(
        "other",
        [
            DeliveredFile("frozen.bin", DIGEST, 7, f"2/{VERSION[:16]}/frozen.bin"),
            DeliveredFile("frozen.bin", DIGEST, 8, FIRST),
            DeliveredFile("frozen.bin", "0" * 64, 7, FIRST),
            DeliveredFile("frozen.bin", DIGEST, 7, "../../others/frozen.bin"),
        ],
    )
    def test_nothing_else_is_shared(self, who: Principal, commits: None, other: DeliveredFile) -> None:
        alpha, run = saving(who)
        self.save(alpha, run, 1, shares=False)
        announce(alpha, run, "epoch-2", version="a2")
        with pytest.raises(CheckpointRefused, match="is not kept any more"):
            collecting.deliver(part_of(alpha, run), 2, PartDelivery([other], version=VERSION))

    def test_nor_is_what_is_not_kept_any_more(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = saving(who)
        for number in (1, 2, 3):
            with django_capture_on_commit_callbacks(execute=True):
                self.save(alpha, run, number, shares=False)
        with pytest.raises(CheckpointRefused, match="is not kept any more"):
            self.save(alpha, run, 4, shares=True)
