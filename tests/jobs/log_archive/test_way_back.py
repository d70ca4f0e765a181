"""Archived logs come back to DATA_DIR/runs."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from jobs.log_archive import way_back
from jobs.logs import log_store
from jobs.models import ArchivedLog, DataRemoval, LogArchive
from jobs.retention_rules import contents
from jobs.states import DataKind
from tests.jobs.log_archive.conftest import LOG, LOGS, EndedRun, read_whole
from tests.workspaces.object_store.files import row_of
from workspaces.object_store.models import ObjectState

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def said(verb: str) -> str:
    out = StringIO()
    call_command("logs", verb, stdout=out)
    return out.getvalue()


def test_all_come_back_as_they_were(ended: EndedRun, settings: Any) -> None:
    written = {name: log_store.log_facts(ended.id, 1, name) for name in LOGS}
    ended.archive()
    assert "2 logs are stored files, 1.2 MiB." in said("status")
    settings.LOG_ARCHIVE_AFTER_HOURS = 0
    assert "2 logs are in DATA_DIR/runs again." in said("to-runs")
    assert ended.local() == set(LOGS)
    assert {name: log_store.path(ended.id, 1, name).read_bytes() for name in LOGS} == LOGS
    assert {name: log_store.log_facts(ended.id, 1, name) for name in LOGS} == written
    assert not ArchivedLog.objects.exists()
    # And may go again.
    settings.LOG_ARCHIVE_AFTER_HOURS = 24
    ended.archive()
    assert read_whole(ended.run, LOG) == LOGS[LOG]


def test_not_while_the_hub_would_move_them_again(ended: EndedRun) -> None:
    ended.archive()
    with pytest.raises(CommandError, match="set LOG_ARCHIVE_AFTER_HOURS=0"):
        said("to-runs")


def test_one_that_was_interrupted_goes_on(
    ended: EndedRun, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended.archive()
    settings.LOG_ARCHIVE_AFTER_HOURS = 0
    ended.store.is_away = True
    with pytest.raises(CommandError, match="BLOB_STORE_ENDPOINT"):
        said("to-runs")
    ended.store.is_away = False
    with monkeypatch.context() as patched:
        patched.setattr(way_back, "_return_log", _first_only(way_back._return_log))
        with pytest.raises(KeyboardInterrupt):
            said("to-runs")
    assert {name: read_whole(ended.run, name) for name in LOGS} == LOGS
    said("to-runs")
    assert ended.local() == set(LOGS)
    assert not LogArchive.objects.exists()


def test_one_that_a_rule_takes_meanwhile_stays_away(
    ended: EndedRun, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended.archive()
    settings.LOG_ARCHIVE_AFTER_HOURS = 0
    real = way_back._write_file

    def after_the_rule(*arguments: Any) -> None:
        real(*arguments)
        DataRemoval.objects.get_or_create(run=ended.run, kind=DataKind.LOGS, defaults={"days": 1})
        ArchivedLog.objects.all().delete()

    monkeypatch.setattr(way_back, "_write_file", after_the_rule)
    said("to-runs")
    contents.remove(DataKind.LOGS, [ended.id])
    assert not ended.local()


def test_their_objects_go_as_those_of_deleted_files(ended: EndedRun, settings: Any) -> None:
    ended.archive()
    hashes = {*ArchivedLog.objects.values_list("sha256", flat=True)}
    settings.LOG_ARCHIVE_AFTER_HOURS = 0
    said("to-runs")
    assert {row_of(sha256).state for sha256 in hashes} == {ObjectState.DELETED}


def _first_only(real: Any) -> Any:
    calls: list[Any] = []

    def act(log: ArchivedLog) -> None:
        calls.append(log)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(log)

    return act
