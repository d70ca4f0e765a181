"""Logs move into the object store some time after their attempt has ended, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.log_archive import archive_round, attempt_logs
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
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of
from trainhub_launch.log_names import PACKAGES_FILE
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.object_store.models import StoredObject
from workspaces.stored_files import blob_cache, blob_gc, blob_uploads, blobs, deletions

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


class TestTroubles:
    def test_nothing_goes_before_the_store_has_it(self, ended: EndedRun) -> None:
        ended.store.is_away = True
        ended.store_logs()
        blob_uploads.upload_waiting()
        assert ended.remove_files() == 0
        assert ended.local() == set(LOGS)
        ended.store.is_away = False
        StoredObject.objects.update(try_at=timezone.now())
        blob_uploads.upload_waiting()
        assert ended.remove_files() == 1
        drop_copies()
        assert read_whole(ended.run, LOG) == LINES

    @pytest.mark.parametrize("step", ["mark", "copy", "record", "remove", "end"])
    def test_a_kill_at_any_step_loses_nothing(
        self, ended: EndedRun, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            _break(patched, step)
            with pytest.raises(KeyboardInterrupt):
                ended.archive()
        process_caches.clear_all()
        assert {name: read_whole(ended.run, name) for name in LOGS} == LOGS
        blob_uploads.upload_waiting()
        ended.store_logs()
        blob_uploads.upload_waiting()
        ended.remove_files()
        assert not ended.local()
        drop_copies()
        assert {name: read_whole(ended.run, name) for name in LOGS} == LOGS
        assert LogArchive.objects.get(attempt__run=ended.id).done_at

    def test_a_changed_file_is_stored_again(self, ended: EndedRun) -> None:
        ended.store_logs()
        blob_uploads.upload_waiting()
        with log_store.path(ended.id, 1, LOG).open("ab") as file:
            file.write(b"more\n")
        assert ended.remove_files() == 0
        assert ended.local() == set(LOGS)
        ended.archive()
        assert read_whole(ended.run, LOG) == LINES + b"more\n"

    def test_a_stored_file_that_is_damaged_before_its_upload_is_stored_again(self, ended: EndedRun) -> None:
        ended.store_logs()
        sha256 = ArchivedLog.objects.get(name=LOG).sha256
        blobs.path(sha256).chmod(0o600)
        blobs.path(sha256).write_bytes(LINES[:-1] + b"?")
        blob_uploads.upload_waiting()
        assert not blobs.exists(sha256)
        assert ended.remove_files() == 0
        ended.archive()
        assert read_whole(ended.run, LOG) == LINES

    def test_while_a_backup_runs_no_file_goes(self, ended: EndedRun) -> None:
        ended.store_logs()
        blob_uploads.upload_waiting()
        with deletions.held(5):
            assert ended.remove_files() == 0
            assert ended.local() == set(LOGS)
        assert ended.remove_files() == 1

    def test_while_much_waits_for_its_upload_nothing_is_added(
        self, ended: EndedRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The source of the run.
        blob_uploads.upload_waiting()
        monkeypatch.setattr(archive_round, "MAX_WAITING_BYTES", 1)
        ended.store_logs()
        assert ArchivedLog.objects.count() == 1
        ended.store_logs()
        assert ArchivedLog.objects.count() == 1
        blob_uploads.upload_waiting()
        ended.store_logs()
        assert ArchivedLog.objects.count() == 2

    def test_a_full_disk_leaves_logs_where_they_are(
        self, ended: EndedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(blob_cache, "free_bytes", lambda: 0)
            ended.store_logs()
        assert not ArchivedLog.objects.exists()
        assert "Free space there." in caplog.text
        ended.archive()

    def test_a_small_cache_is_no_obstacle(self, ended: EndedRun, settings: Any) -> None:
        reconfigure(settings, cache_bytes=1000)
        ended.archive()
        assert read_whole(ended.run, LOG) == LINES

    def test_one_attempt_that_fails_keeps_no_other(
        self, ended: EndedRun, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        second = EndedRun(who, ended.store, {LOG: b"second"})

        def refuse(run_id: str, attempt: int) -> dict[str, int]:
            if run_id == ended.id:
                raise PermissionError(run_id)
            return real(run_id, attempt)

        real = log_store.local_log_sizes
        with monkeypatch.context() as patched:
            patched.setattr(log_store, "local_log_sizes", refuse)
            second.store_logs()
        assert {*ArchivedLog.objects.values_list("attempt__run", flat=True)} == {second.id}


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


def _break(patched: pytest.MonkeyPatch, step: str) -> None:
    """Lets a step end the process, as far as Python can: its second call if it is made for each log."""
    calls: list[Any] = []

    def broken(real: Any, at: int = 1) -> Any:
        def act(*arguments: Any, **named: Any) -> Any:
            calls.append(arguments)
            if len(calls) == at:
                raise KeyboardInterrupt
            return real(*arguments, **named)

        return act

    @contextmanager
    def ending() -> Iterator[bool]:
        with real_allowed() as is_allowed:
            yield is_allowed
        raise KeyboardInterrupt

    real_allowed = deletions.allowed
    if step == "mark":
        patched.setattr(log_store, "mark_archived", broken(log_store.mark_archived))
    elif step == "copy":
        patched.setattr(attempt_logs, "_store_log", broken(attempt_logs._store_log, 2))
    elif step == "record":
        patched.setattr(attempt_logs, "_record", broken(attempt_logs._record))
    elif step == "remove":
        real, second = Path.unlink, broken(Path.unlink, 2)
        patched.setattr(
            Path, "unlink", lambda path, **named: (second if "logs" in path.parts else real)(path, **named)
        )
    else:
        patched.setattr(deletions, "allowed", ending)
