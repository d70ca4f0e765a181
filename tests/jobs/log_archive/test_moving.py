"""Logs move into the object store some time after their attempt has ended, whatever happens meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.log_archive import archive_round
from jobs.log_archive.open_archives import GRACE
from jobs.log_shipping.models import LogProgress, LogTarget
from jobs.logs import log_store
from jobs.models import ArchivedLog, Attempt, AttemptNode, LogArchive, Run
from tests.jobs.builders import running
from tests.jobs.log_archive.conftest import (
    DAY_LATER,
    EVENTS,
    LINES,
    LOG,
    LOGS,
    OTHER,
    EndedRun,
    drop_copies,
    read_whole,
)
from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.files import objects, row_of
from trainhub_launch.log_names import PACKAGES_FILE
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.servers.models import ServerProcess
from workspaces.stored_files import blob_gc, blob_uploads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


class TestWhole:
    def test_logs_leave_the_disk_and_are_read_as_before(self, ended: EndedRun) -> None:
        before = log_store.log_sizes(ended.id, 1)
        written = {name: log_store.log_facts(ended.id, 1, name) for name in LOGS}
        ended.archive()
        assert log_store.log_sizes(ended.id, 1) == before
        assert {name: log_store.log_facts(ended.id, 1, name) for name in LOGS} == written
        assert {name: read_whole(ended.run, name) for name in LOGS} == LOGS
        assert all(log_store.is_complete(ended.id, 1, name) for name in LOGS)
        assert {
            objects(ended.store)[f"hub/{row_of(row.sha256).key}"] for row in ArchivedLog.objects.all()
        } == {*LOGS.values()}

    def test_event_files_and_lists_of_packages_stay(self, ended: EndedRun) -> None:
        log_store.append(ended.id, 1, PACKAGES_FILE, 0, b"{}")
        ended.archive()
        folder = log_store.run_folder(ended.id, 1) / "logs"
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert names == {EVENTS, PACKAGES_FILE}
        assert log_store.event_file_sizes(ended.id, 1) == {EVENTS: 6}

    def test_a_second_round_does_nothing(self, ended: EndedRun) -> None:
        ended.archive()
        requests = len(ended.store.requests)
        assert ended.remove_files() == 0
        assert len(ended.store.requests) == requests

    def test_a_lost_folder_of_runs_takes_no_archived_log_along(self, ended: EndedRun) -> None:
        ended.archive()
        (log_store.run_folder(ended.id)).rename(log_store.run_folder(ended.id).with_name("lost"))
        assert read_whole(ended.run, LOG) == LINES
        assert log_store.is_complete(ended.id, 1, LOG)


class TestWhen:
    def test_only_after_the_time_of_the_setting(self, ended: EndedRun, settings: Any) -> None:
        archive_round.archive_due(ended.ended_at + timedelta(hours=23))
        assert not ArchivedLog.objects.exists()
        settings.LOG_ARCHIVE_AFTER_HOURS = 22
        archive_round.archive_due(ended.ended_at + timedelta(hours=23))
        assert ArchivedLog.objects.count() == len(LOGS)

    def test_never_with_0_and_without_a_store(self, ended: EndedRun, settings: Any) -> None:
        settings.LOG_ARCHIVE_AFTER_HOURS = 0
        ended.store_logs()
        settings.LOG_ARCHIVE_AFTER_HOURS, settings.BLOB_STORE = 24, None
        ended.store_logs()
        assert not LogArchive.objects.exists()

    def test_not_while_the_attempt_runs(self, who: Principal, store: S3Server) -> None:
        played, run = running(who)
        played.log(run, LOG, 0, b"x")
        archive_round.archive_due(timezone.now() + timedelta(days=9))
        assert not ArchivedLog.objects.exists()

    @pytest.mark.parametrize("is_late", [False, True], ids=["away", "back-late"])
    def test_not_before_every_node_has_settled_its_part(self, ended: EndedRun, is_late: bool) -> None:
        settled = ended.ended_at + timedelta(hours=24) if is_late else None
        AttemptNode.objects.update(settled_at=settled)
        ended.store_logs()
        assert not ArchivedLog.objects.exists()
        AttemptNode.objects.update(settled_at=ended.ended_at)
        ended.store_logs()
        assert ArchivedLog.objects.exists()

    def test_not_before_a_log_system_has_its_lines(self, ended: EndedRun) -> None:
        target = LogTarget.objects.create(
            workspace=ended.run.workspace, kind="otlp", url="x", since=ended.ended_at, try_at=ended.ended_at
        )
        attempt = Attempt.objects.get(run=ended.run)
        progress = LogProgress.objects.create(target=target, attempt=attempt)
        ended.store_logs()
        assert not ArchivedLog.objects.exists()
        LogProgress.objects.filter(pk=progress.pk).update(is_over=True)
        ended.store_logs()
        assert ArchivedLog.objects.exists()

    def test_not_of_deleted_runs(self, ended: EndedRun) -> None:
        Run.objects.filter(pk=ended.id).update(deleted_at=timezone.now())
        ended.store_logs()
        assert not ArchivedLog.objects.exists()

    def test_files_stay_for_the_grace(self, ended: EndedRun) -> None:
        ended.store_logs()
        blob_uploads.upload_waiting()
        archive_round.archive_due(ended.ended_at + DAY_LATER + GRACE / 2)
        assert ended.local() == set(LOGS)

    def test_attempts_that_begin_meanwhile_are_not_passed_over(self, ended: EndedRun, who: Principal) -> None:
        archive_round.archive_due(timezone.now())
        # It is not certain yet that no earlier attempt becomes visible.
        assert not LogArchive.objects.exists()
        second = EndedRun(who, ended.store, {LOG: b"second"})
        ended.store_logs()
        assert LogArchive.objects.count() == 2
        assert second.id in ArchivedLog.objects.values_list("attempt__run", flat=True)


@pytest.mark.postgresql
def test_not_while_a_server_of_another_version_lives(ended: EndedRun) -> None:
    now = timezone.now()
    server = ServerProcess(id="a", name="web-1", machine="m", role="web", version="0.0.1")
    server.started_at = server.renewed_at = now
    server.save()
    ended.store_logs()
    assert not ArchivedLog.objects.exists()
    ServerProcess.objects.update(renewed_at=now - timedelta(hours=1))
    ended.store_logs()
    assert ArchivedLog.objects.exists()


class TestLateBytes:
    def test_of_an_archived_log_are_not_stored(self, ended: EndedRun) -> None:
        ended.archive()
        with pytest.raises(log_store.LogArchived):
            log_store.append(ended.id, 1, LOG, 0, b"late")
        with pytest.raises(log_store.LogArchived):
            log_store.append(ended.id, 1, LOG, len(LINES), b"late")
        assert not ended.local()
        assert read_whole(ended.run, LOG) == LINES

    def test_a_node_that_comes_back_is_answered_and_changes_nothing(self, ended: EndedRun) -> None:
        ended.archive()
        assert ended.played.log(ended.run, LOG, 10, b"late") == 14
        # As if the hub still knew of its part, after a restoration.
        AttemptNode.objects.update(settled_at=None)
        Attempt.objects.update(ended_at=None)
        process_caches.clear_all()
        assert ended.played.log(ended.run, LOG, len(LINES), b"late") == len(LINES) + 4
        assert not ended.local()
        assert log_store.size(ended.id, 1, LOG) == len(LINES)

    def test_new_logs_of_the_attempt_may_begin(self, ended: EndedRun) -> None:
        ended.archive()
        log_store.append(ended.id, 1, "new.txt", 0, b"new")
        assert log_store.log_sizes(ended.id, 1) == {
            LOG: len(LINES),
            "new.txt": 3,
            OTHER: len(LOGS[OTHER]),
        }


def test_the_sweep_spares_archived_logs(ended: EndedRun) -> None:
    ended.archive(is_local=True)
    blob_gc.sweep(timezone.now().timestamp() + 30 * 86400)
    drop_copies()
    assert read_whole(ended.run, LOG) == LINES
