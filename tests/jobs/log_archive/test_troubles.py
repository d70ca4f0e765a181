"""What happens while logs move into the object store, and what it does to them: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs.log_archive import archive_round, attempt_logs
from jobs.logs import log_store
from jobs.models import ArchivedLog, LogArchive
from tests.jobs.log_archive.conftest import (
    LINES,
    LOG,
    LOGS,
    EndedRun,
    drop_copies,
    read_whole,
)
from tests.workspaces.object_store.conftest import reconfigure
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.object_store.models import StoredObject
from workspaces.stored_files import blob_cache, blob_uploads, blobs, deletions

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def test_nothing_goes_before_the_store_has_it(ended: EndedRun) -> None:
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
    ended: EndedRun, step: str, monkeypatch: pytest.MonkeyPatch
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


def test_a_changed_file_is_stored_again(ended: EndedRun) -> None:
    ended.store_logs()
    blob_uploads.upload_waiting()
    with log_store.path(ended.id, 1, LOG).open("ab") as file:
        file.write(b"more\n")
    assert ended.remove_files() == 0
    assert ended.local() == set(LOGS)
    ended.archive()
    assert read_whole(ended.run, LOG) == LINES + b"more\n"


def test_a_stored_file_that_is_damaged_before_its_upload_is_stored_again(ended: EndedRun) -> None:
    ended.store_logs()
    sha256 = ArchivedLog.objects.get(name=LOG).sha256
    blobs.path(sha256).chmod(0o600)
    blobs.path(sha256).write_bytes(LINES[:-1] + b"?")
    blob_uploads.upload_waiting()
    assert not blobs.exists(sha256)
    assert ended.remove_files() == 0
    ended.archive()
    assert read_whole(ended.run, LOG) == LINES


def test_while_a_backup_runs_no_file_goes(ended: EndedRun) -> None:
    ended.store_logs()
    blob_uploads.upload_waiting()
    with deletions.held(5):
        assert ended.remove_files() == 0
        assert ended.local() == set(LOGS)
    assert ended.remove_files() == 1


def test_while_much_waits_for_its_upload_nothing_is_added(
    ended: EndedRun, monkeypatch: pytest.MonkeyPatch
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
    ended: EndedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(blob_cache, "free_bytes", lambda: 0)
        ended.store_logs()
    assert not ArchivedLog.objects.exists()
    assert "Free space there." in caplog.text
    ended.archive()


def test_a_small_cache_is_no_obstacle(ended: EndedRun, settings: Any) -> None:
    reconfigure(settings, cache_bytes=1000)
    ended.archive()
    assert read_whole(ended.run, LOG) == LINES


def test_one_attempt_that_fails_keeps_no_other(
    ended: EndedRun, who: Principal, monkeypatch: pytest.MonkeyPatch
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
