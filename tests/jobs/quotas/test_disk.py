"""The quota of disk: what counts, what is refused at the limit, and what is still taken."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import DiskUse
from jobs import outputs
from jobs.models import Artifact, Run, Snapshot
from jobs.quotas import disk_quota, disk_use, quota_admin
from jobs.quotas.disk_quota import DiskQuotaExceeded
from jobs.scheduling.submission import SubmitRefused
from jobs.sources.snapshots import SnapshotError
from jobs.states import RunState
from tests.jobs.builders import launched, node, queued, running, snapshot, spec
from tests.people import client_of, make_person, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db
MIB = 2**20


@pytest.fixture
def vic(db: None) -> Principal:
    return member("vic")


def member(name: str) -> Principal:
    return principal_of(make_person(name, Role.CONTRIBUTOR, make_workspace("vision")))


def ended(who: Principal) -> Run:
    run = launched(who)
    Run.objects.filter(pk=run.pk).update(state=RunState.COMPLETED, finished_at=timezone.now())
    run.refresh_from_db()
    return run


def output(run: Run, name: str, mib: int) -> Artifact:
    """Stores only the row: measuring reads no file."""
    return outputs.put_output(run, 1, f"outputs/{name}", name.ljust(64, "0"), mib * MIB)


def limit(who: Principal, gib: float, scope: str = "workspace", person: str = "") -> str:
    row = quota_admin.set_quota(who.workspace, scope, person, {"disk_gib": gib}, who.user)
    assert row is not None
    return row.note


def measured_long_ago() -> None:
    DiskUse.objects.update(measured_at=timezone.now() - timedelta(minutes=1))


def used(who: Principal, *, all_people: bool = True) -> int:
    return disk_use.disk_bytes()[who.workspace.pk, None if all_people else who.user.pk]


class TestUse:
    def test_a_file_counts_once_for_the_workspace_and_once_for_each_person(self, vic: Principal) -> None:
        node()
        vera = member("vera")
        for who in (vic, vic, vera):
            output(ended(who), "weights", 5)
        output(ended(vera), "more", 2)
        disk_use.measure_disk(vic.workspace)
        sources = sum(Snapshot.objects.values_list("size_bytes", flat=True))
        own_source = sum(Snapshot.objects.filter(created_by=vera.user).values_list("size_bytes", flat=True))
        assert used(vic) == 7 * MIB + sources
        assert used(vera, all_people=False) == 7 * MIB + own_source

    def test_logs_of_active_and_of_ended_runs_count(self, vic: Principal) -> None:
        alpha, run = running(vic)
        disk_use.measure_disk(vic.workspace)
        before = used(vic)
        alpha.log(run, "70_driver_log.txt", 0, b"x" * 1000)
        disk_use.measure_disk(vic.workspace)
        # And the small file in which the hub notes how long each log is.
        assert before + 1000 <= used(vic) < before + 1100
        run.attempts.get().members.update(log_bytes=1500)
        Run.objects.update(state=RunState.COMPLETED)
        disk_use.measure_disk(vic.workspace)
        # Of an ended run the sizes that its nodes reported.
        assert used(vic) == before + 1500

    def test_only_workspaces_with_a_quota_are_measured_from_time_to_time(self, vic: Principal) -> None:
        limit(vic, 1)
        other = make_workspace("speech")
        disk_use.measure_disk(other)
        disk_use.measure_limited()
        assert set(DiskUse.objects.values_list("workspace__slug", flat=True)) == {"vision"}


class TestLimit:
    def test_a_lowered_one_is_accepted_and_says_what_is_above_it(self, vic: Principal) -> None:
        node()
        output(ended(vic), "weights", 200)
        assert limit(vic, 0.125) == (
            "Workspace vision stores 200 MiB, more than 128 MiB; nothing is stopped, only new runs wait or "
            "are refused, and new files."
        )

    def test_new_sources_and_submissions_are_refused_until_something_is_deleted(self, vic: Principal) -> None:
        node()
        big = output(ended(vic), "weights", 200)
        wanted = spec(vic)
        limit(vic, 0.125)
        with pytest.raises(SnapshotError, match="vision stores 200 MiB, and its quota of disk is 128"):
            snapshot(vic, {"other.py": "print(1)"})
        with pytest.raises(SubmitRefused, match="have an owner purge them at /runs/deleted/") as refused:
            queued(vic)
        assert refused.value.field == "source"
        # What the workspace has already needs no room.
        assert snapshot(vic).sha256 == wanted.to_json()["source"]["id"]
        big.delete()
        measured_long_ago()
        assert queued(vic).state == RunState.QUEUED

    def test_what_was_accepted_counts_before_it_is_measured(self, vic: Principal) -> None:
        limit(vic, 0.001)
        disk_quota.check_room(vic.workspace, vic.user, MIB, field="file")
        with pytest.raises(DiskQuotaExceeded, match=r"with 100 KiB more it would be above its quota of disk"):
            disk_quota.check_room(vic.workspace, vic.user, 100 * 1024, field="file")

    def test_refusals_do_not_measure_again_and_again(self, vic: Principal) -> None:
        limit(vic, 0)
        for _ in range(2):
            assert "its quota of disk is 0 B" in disk_quota.refusal(vic.workspace, vic.user)
        first = DiskUse.objects.get(person=None).measured_at
        disk_quota.refusal(vic.workspace, vic.user)
        assert DiskUse.objects.get(person=None).measured_at == first

    def test_of_each_person_does_not_hold_for_one_with_a_quota_of_their_own(self, vic: Principal) -> None:
        vera = member("vera")
        limit(vic, 0, "people")
        limit(vic, 1, "person", "vera")
        assert "vic in workspace vision stores 0 B" in disk_quota.refusal(vic.workspace, vic.user)
        assert disk_quota.refusal(vera.workspace, vera.user) == ""

    def test_files_of_active_runs_are_let_in_and_counted(self, vic: Principal) -> None:
        _, run = running(vic)
        limit(vic, 0)
        before = used(vic)
        disk_quota.check_room(vic.workspace, vic.user, MIB, run=run, field="path")
        assert used(vic) == before + MIB
        Run.objects.update(state=RunState.COMPLETED)
        run.refresh_from_db()
        with pytest.raises(DiskQuotaExceeded):
            disk_quota.check_room(vic.workspace, vic.user, MIB, run=run, field="path")


def test_the_page_says_what_is_used_and_how_often_it_is_measured(vic: Principal) -> None:
    vic.user.is_operator = True
    vic.user.save()
    browser = client_of(vic.user)
    page = browser.post("/quotas/", {"scope": "workspace", "disk_gib": "1.5"}, follow=True).content.decode()
    assert "0 B of 1.5 GiB" in page
    assert "The disk is measured every 5 minutes" in page
