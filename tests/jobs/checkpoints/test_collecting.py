"""The parts of a checkpoint, from its announcement to the attempt that begins with it."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from clusters.models import Quota
from jobs.checkpoints import collecting, restoring
from jobs.checkpoints.collecting import REFUSED
from jobs.checkpoints.part_files import CheckpointRefused, DeliveredFile, PartDelivery
from jobs.models import Attempt, Checkpoint, CheckpointFile
from jobs.quotas import disk_use
from jobs.retention import deletion, run_purge
from tests.jobs.builders import both_running, running, spec
from tests.jobs.checkpoints.saving import WEIGHTS, announce, deliver, part_of, save, states
from trainhub_launch.states import CheckpointSign
from workspaces.access import Principal
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


class TestOneNode:
    def test_is_complete_once_it_is_delivered(self, who: Principal) -> None:
        alpha, run = running(who)
        assert announce(alpha, run, "last.pt") == {"last.pt": 1}
        assert states(run) == {"last.pt": "collecting"}
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        row = Checkpoint.objects.get(run=run)
        assert (row.state, row.size_bytes, row.file_count) == ("complete", len(WEIGHTS), 1)

    def test_is_asked_for_with_the_answers_to_reports_until_it_is_here(self, who: Principal) -> None:
        alpha, run = running(who)
        announce(alpha, run, "last.pt")
        assert alpha.report().checkpoints == ((run.pk, 1, 1, "last.pt"),)
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        assert alpha.report().checkpoints == ()

    def test_a_repeated_announcement_makes_no_second_one(self, who: Principal) -> None:
        alpha, run = running(who)
        assert announce(alpha, run, "last.pt") == announce(alpha, run, "last.pt") == {"last.pt": 1}
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        assert announce(alpha, run, "last.pt") == {"last.pt": 1}
        deliver(alpha, run, 1, {"last.pt": b"other"})
        assert CheckpointFile.objects.get(checkpoint__run=run).size_bytes == len(WEIGHTS)

    def test_a_newer_one_of_the_same_name_waits_for_its_turn(self, who: Principal) -> None:
        alpha, run = running(who)
        announce(alpha, run, "last.pt", version="a1")
        assert announce(alpha, run, "last.pt", version="a2") == {}
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        assert announce(alpha, run, "last.pt", version="a2") == {"last.pt": 2}

    def test_without_a_sign_it_is_unconfirmed_and_no_attempt_begins_with_it(self, who: Principal) -> None:
        alpha, run = running(who)
        save(alpha, run, "last.pt", sign=CheckpointSign.NONE)
        assert states(run) == {"last.pt": "unconfirmed"}
        assert restoring.newest(run) is None

    def test_deepspeed_finds_it_by_a_file_that_names_it(self, who: Principal) -> None:
        alpha, run = running(who)
        announce(alpha, run, "epoch-1", sign=CheckpointSign.LATEST)
        deliver(alpha, run, 1, {"epoch-1/shard": WEIGHTS})
        row = Checkpoint.objects.get(run=run)
        assert (row.state, row.size_bytes, row.file_count) == ("complete", len(WEIGHTS) + len("epoch-1"), 2)
        assert blobs.path(row.files.get(path="latest").sha256).read_text() == "epoch-1"

    @pytest.mark.parametrize("path", ["latest", "epoch-1/latest"])
    def test_unless_it_has_such_a_file_itself(self, who: Principal, path: str) -> None:
        alpha, run = running(who)
        announce(alpha, run, "epoch-1", sign=CheckpointSign.LATEST)
        deliver(alpha, run, 1, {"epoch-1/shard": WEIGHTS, path: b"own"})
        row = Checkpoint.objects.get(run=run)
        assert set(row.files.values_list("path", flat=True)) == {"epoch-1/shard", path}

    def test_torn_it_is_not_kept_and_said(self, who: Principal) -> None:
        alpha, run = running(who)
        save(alpha, run, "one.pt")
        announce(alpha, run, "two.pt")
        deliver(alpha, run, 2, torn="it was changed while it was being saved.")
        assert states(run) == {"one.pt": "complete", "two.pt": "torn"}
        assert "it was changed" in Attempt.objects.get(run=run).warnings[0]
        newest = restoring.newest(run)
        assert newest is not None
        assert newest.name == "one.pt"

    def test_a_file_that_the_node_has_not_sent_is_refused(self, who: Principal) -> None:
        alpha, run = running(who)
        announce(alpha, run, "last.pt")
        stranger = hashlib.sha256(b"of another workspace").hexdigest()
        with pytest.raises(CheckpointRefused, match="not been uploaded"):
            collecting.deliver(part_of(alpha, run), 1, PartDelivery([DeliveredFile("last.pt", stranger)]))
        assert states(run) == {"last.pt": "collecting"}

    @pytest.mark.parametrize("path", ["../last.pt", "/etc/passwd", "a//b", "a\\b", ""])
    def test_a_path_that_leads_out_is_refused(self, who: Principal, path: str) -> None:
        alpha, run = running(who)
        announce(alpha, run, "last.pt")
        with pytest.raises(CheckpointRefused, match="cannot be stored"):
            deliver(alpha, run, 1, {path: WEIGHTS})

    def test_what_cannot_be_kept_is_said_once(self, who: Principal) -> None:
        alpha, run = running(who)
        assert announce(alpha, run, "big", wrong="it has more than 10,000 files") == {"big": REFUSED}
        assert "more than 10,000 files" in Attempt.objects.get(run=run).warnings[0]
        assert states(run) == {}

    def test_a_full_quota_of_disk_keeps_none(self, who: Principal) -> None:
        alpha, run = running(who)
        Quota.objects.create(workspace=who.workspace, scope="workspace", disk_gib=1e-9)
        disk_use.measure_disk(who.workspace)
        assert announce(alpha, run, "last.pt") == {"last.pt": REFUSED}
        assert "disk" in Attempt.objects.get(run=run).warnings[0]

    def test_only_a_few_are_collected_at_once(self, who: Principal) -> None:
        alpha, run = running(who)
        assert set(announce(alpha, run, "a", "b", "c", "d", "e", "f")) == {"a", "b", "c", "d"}


class TestSeveralNodes:
    def test_is_complete_once_every_node_has_delivered(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        announce(alpha, run, "step-1", sign=CheckpointSign.METADATA)
        deliver(alpha, run, 1, {"step-1/__0_0.distcp": b"0", "step-1/.metadata": b"m"})
        assert states(run) == {"step-1": "collecting"}
        assert beta.report().checkpoints == ((run.pk, 1, 1, "step-1"),)
        deliver(beta, run, 1, {"step-1/__1_0.distcp": b"1"})
        assert states(run) == {"step-1": "complete"}

    def test_a_node_without_such_an_entry_delivers_nothing(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        deliver(beta, run, 1)
        assert states(run) == {"last.pt": "complete"}

    def test_a_node_whose_ranks_have_ended_without_it_is_not_waited_for(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        announce(beta, run, final=["other.pt"])
        announce(alpha, run, "last.pt", final=["last.pt"])
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        assert states(run) == {"last.pt": "complete"}

    def test_a_sign_on_any_node_makes_it_complete(self, who: Principal) -> None:
        alpha, beta, run = both_running(who)
        announce(beta, run, "step-1", sign=CheckpointSign.NONE)
        announce(alpha, run, "step-1", sign=CheckpointSign.METADATA)
        for played in (alpha, beta):
            deliver(played, run, 1, {f"step-1/{played.node.name}": WEIGHTS})
        row = Checkpoint.objects.get(run=run)
        assert (row.state, row.sign) == ("complete", "metadata")

    def test_a_node_that_is_gone_tears_it(self, who: Principal) -> None:
        alpha, _, run = both_running(who)
        announce(alpha, run, "last.pt")
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        collecting.give_up()
        assert states(run) == {"last.pt": "collecting"}
        Attempt.objects.filter(run=run).update(ended_at=timezone.now() - timedelta(hours=1))
        collecting.give_up()
        assert states(run) == {"last.pt": "torn"}

    def test_each_node_begins_with_all_files_and_its_own_of_the_same_name(self, who: Principal) -> None:
        alpha, beta, run = both_running(who, limits={"retries": 1})
        announce(alpha, run, "step-1", sign=CheckpointSign.MARKER)
        deliver(alpha, run, 1, {"step-1/own": b"of alpha", "step-1/a": b"a"})
        deliver(beta, run, 1, {"step-1/own": b"of beta", "step-1/b": b"b"})
        Attempt.objects.filter(run=run).update(restores=Checkpoint.objects.get(run=run))
        files = {}
        for played in (alpha, beta):
            order = restoring.order_of(part_of(played, run), spec(who))
            files[played.node.name] = {file.path: file.sha256 for file in order.files}
        assert set(files["alpha"]) == set(files["beta"]) == {"step-1/own", "step-1/a", "step-1/b"}
        assert files["alpha"]["step-1/own"] == hashlib.sha256(b"of alpha").hexdigest()
        assert files["beta"]["step-1/own"] == hashlib.sha256(b"of beta").hexdigest()


class TestKeeping:
    def test_the_newest_stay(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = running(who, checkpoint={"keep": 2})
        for epoch in range(4):
            with django_capture_on_commit_callbacks(execute=True):
                save(alpha, run, f"epoch-{epoch}", f"weights {epoch}".encode())
        assert set(states(run)) == {"epoch-2", "epoch-3"}
        assert not blobs.exists(hashlib.sha256(b"weights 0").hexdigest())
        assert blobs.exists(hashlib.sha256(b"weights 3").hexdigest())

    def test_the_newest_complete_one_outlives_any_number_of_others(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = running(who, checkpoint={"keep": 1})
        with django_capture_on_commit_callbacks(execute=True):
            save(alpha, run, "good")
        for epoch in range(3):
            with django_capture_on_commit_callbacks(execute=True):
                save(alpha, run, f"unsure-{epoch}", f"{epoch}".encode(), sign=CheckpointSign.NONE)
        assert states(run) == {"good": "complete", "unsure-2": "unconfirmed"}

    def test_they_are_purged_with_their_run(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, run = running(who)
        save(alpha, run, "last.pt")
        alpha.finish(run)
        run.refresh_from_db()
        deletion.delete(run, who.user)
        run_purge.purge_now(run, who.user)
        run_purge.purge_due(lambda _: None)
        assert not Checkpoint.objects.exists()
        assert not blobs.exists(hashlib.sha256(WEIGHTS).hexdigest())
