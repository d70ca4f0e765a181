"""Archived logs go with what they belong to, and count as before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.log_archive import attempt_logs
from jobs.logs import log_store
from jobs.models import ArchivedLog, DataRemoval, LogArchive, Member, Run
from jobs.quotas import disk_use
from jobs.retention import deletion, reclaimable_bytes, run_purge
from jobs.retention_rules import contents
from jobs.states import DataKind, RunState
from tests.jobs.log_archive.conftest import EVENTS, LOG, LOGS, EndedRun, drop_copies, read_whole
from workspaces.access import Principal
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.stored_files import blobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
TOTAL = sum(map(len, LOGS.values()))


def hashes() -> set[str]:
    return {*ArchivedLog.objects.values_list("sha256", flat=True)}


def test_a_purge_takes_them(ended: EndedRun, who: Principal) -> None:
    ended.archive()
    stored = hashes()
    deletion.delete(ended.run, who.user)
    before = reclaimable_bytes.bytes_by_group({1: {ended.id}})[1]
    assert TOTAL <= before < TOTAL + 10_000
    assert run_purge.purge_due(lambda _: None, now=timezone.now() + timedelta(days=31)) == 1
    assert not Run.objects.exists()
    assert not LogArchive.objects.exists()
    assert not log_store.run_folder(ended.id).exists()
    assert not any(blobs.exists(sha256) for sha256 in stored)
    states = StoredObject.objects.filter(sha256__in=stored).values_list("state", flat=True)
    assert set(states) == {ObjectState.DELETED}


def test_what_another_run_has_too_stays(ended: EndedRun, who: Principal) -> None:
    second = EndedRun(who, ended.store, {LOG: LOGS[LOG]})
    ended.store_logs()
    deletion.delete(ended.run, who.user)
    run_purge.purge_due(lambda _: None, now=timezone.now() + timedelta(days=31))
    second.archive()
    assert read_whole(second.run, LOG) == LOGS[LOG]


def test_a_retention_rule_takes_them(ended: EndedRun) -> None:
    ended.archive()
    stored = hashes()
    DataRemoval.objects.create(run=ended.run, kind=DataKind.LOGS, days=1)
    contents.remove(DataKind.LOGS, [ended.id])
    assert log_store.read(ended.id, 1, LOG, 0, 10) == b""
    assert log_store.log_sizes(ended.id, 1) == {}
    assert log_store.event_file_sizes(ended.id, 1) == {EVENTS: 6}
    assert not any(blobs.exists(sha256) for sha256 in stored)


def test_a_rule_that_removes_them_while_they_move_wins(
    ended: EndedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = attempt_logs._record

    def after_the_rule(*arguments: object) -> None:
        DataRemoval.objects.create(run=ended.run, kind=DataKind.LOGS, days=1)
        contents.remove(DataKind.LOGS, [ended.id])
        real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(attempt_logs, "_record", after_the_rule)
        ended.store_logs()
    assert not ArchivedLog.objects.exists()
    assert ended.remove_files() == 1
    assert log_store.log_sizes(ended.id, 1) == {}


def test_a_reader_that_remembers_a_removed_log_sees_that_it_is_empty(ended: EndedRun) -> None:
    ended.archive()
    assert log_store.archive_rows(ended.id, 1)
    # Another process.
    ArchivedLog.objects.all().delete()
    StoredObject.objects.all().delete()
    assert log_store.read(ended.id, 1, LOG, 0, 10) == b""
    assert log_store.size(ended.id, 1, LOG) == 0


def test_they_count_once_against_a_workspace(ended: EndedRun, who: Principal) -> None:
    Member.objects.update(log_bytes=len(LOGS[LOG]))

    def measured() -> int:
        disk_use.measure_disk(who.workspace)
        return disk_use.disk_bytes(who.workspace)[who.workspace.pk, None]

    before = measured()
    ended.archive()
    assert measured() == before
    # A run that is tried again counts by what is stored of it.
    Run.objects.filter(pk=ended.id).update(state=RunState.RUNNING)
    source = before - len(LOGS[LOG])
    assert TOTAL <= measured() - source < TOTAL + 10_000
    drop_copies()
    assert TOTAL <= measured() - source < TOTAL + 10_000
