"""A changed or deleted event is found, also the last one, and also where the whole chain was computed
anew."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from tests.people import make_owner, make_workspace
from workspaces import audit
from workspaces.audit_trail import chain
from workspaces.models import AuditAnchor, AuditEvent

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def heads(tmp_path: Path, settings: Settings) -> Path:
    settings.AUDIT_HEADS = str(tmp_path / "heads.log")
    return tmp_path / "heads.log"


def record(count: int) -> None:
    for number in range(count):
        audit.record(make_owner(), "run.cancel", f"run {number}", make_workspace(), note="ä", number=1.5)


def problems() -> list[str]:
    return chain.verify().problems


class TestSeal:
    def test_an_untouched_trail_has_no_problem(self) -> None:
        record(3)
        assert chain.seal_new() == 3
        record(2)
        result = chain.verify()
        assert (result.problems, result.count, result.unsealed) == ([], 3, 2)
        assert chain.seal_new() == 2
        assert (chain.verify().problems, chain.verify().count) == ([], 5)

    def test_more_than_a_batch(self, monkeypatch: pytest.MonkeyPatch, heads: Path) -> None:
        monkeypatch.setattr(chain, "BATCH", 2)
        record(5)
        assert chain.seal_new() == 5
        assert [line.split()[0] for line in heads.read_text().splitlines()] == ["2", "4", "5"]
        assert problems() == []

    def test_without_news_nothing_is_written(self, heads: Path) -> None:
        record(1)
        chain.seal_new()
        before = heads.read_text()
        assert chain.seal_new() == 0
        assert heads.read_text() == before

    def test_an_event_that_was_committed_late_follows_the_others(self) -> None:
        record(2)
        first = AuditEvent.objects.order_by("pk").first()
        assert first is not None
        AuditEvent.objects.filter(pk=first.pk).delete()
        chain.seal_new()
        first.save(force_insert=True)
        chain.seal_new()
        assert AuditEvent.objects.get(pk=first.pk).position == 2
        assert problems() == []


class TestTampering:
    @pytest.fixture(autouse=True)
    def sealed(self) -> None:
        record(4)
        chain.seal_new()

    @pytest.mark.parametrize(
        "change",
        [
            {"actor": "mallory"},
            {"verb": "run.delete"},
            {"subject": "run 9"},
            {"detail": {}},
            {"workspace": None},
            {"at": timezone.now() - timedelta(days=1)},
        ],
    )
    def test_a_changed_event_is_named(self, change: dict[str, object]) -> None:
        AuditEvent.objects.filter(position=2).update(**change)
        assert len(problems()) == 1
        assert problems()[0].startswith("Event 2 (")

    def test_deleted_events_in_the_middle_are_named(self) -> None:
        AuditEvent.objects.filter(position__in=(2, 3)).delete()
        assert problems() == ["The events 2 to 3 are missing."]

    def test_deleted_events_at_the_end_are_found_by_the_heads(self) -> None:
        AuditEvent.objects.filter(position__gte=3).delete()
        assert problems() == ["The events 3 to 4, the last ones, are missing."]

    def test_a_chain_that_was_computed_anew_contradicts_the_heads(self) -> None:
        AuditEvent.objects.filter(position=2).update(subject="run 9")
        head = chain.FIRST_SEAL
        for event in AuditEvent.objects.order_by("position"):
            head = chain.compute_seal(head, event)
            AuditEvent.objects.filter(pk=event.pk).update(seal=head)
        assert problems() == ["The seal of event 4 differs from heads.log: the chain was computed anew."]

    def test_a_moved_beginning_is_found(self) -> None:
        third = AuditEvent.objects.get(position=3)
        AuditAnchor.objects.update(position=3, seal="f" * 64)
        AuditEvent.objects.filter(position__lte=third.position or 0).delete()
        assert problems()[0].startswith("Event 4 (")

    def test_missing_and_broken_heads_are_said(self, heads: Path) -> None:
        heads.write_text(heads.read_text() + "nonsense\n")
        assert problems() == ["Line 2 of heads.log is not a head."]
        heads.unlink()
        assert problems() == [f"{heads} is missing: that the last events were deleted would not be found."]

    def test_the_command_says_so_and_exits_with_1(self) -> None:
        out = io.StringIO()
        call_command("audit", "verify", stdout=out)
        assert out.getvalue() == "4 sealed events are as they were written.\n"
        AuditEvent.objects.filter(position=2).delete()
        errors = io.StringIO()
        with pytest.raises(SystemExit) as left:
            call_command("audit", "verify", stderr=errors)
        assert left.value.code == 1
        assert errors.getvalue().splitlines() == [
            "The events 2 to 2 are missing.",
            "1 problems in 3 sealed events.",
        ]


class TestAge:
    def test_old_events_are_deleted_and_the_chain_begins_behind_them(self, settings: Settings) -> None:
        settings.AUDIT_KEEP_DAYS = 30
        record(3)
        AuditEvent.objects.filter(subject__in=("run 0", "run 1")).update(
            at=timezone.now() - timedelta(days=31)
        )
        chain.seal_new()
        assert chain.delete_old(timezone.now()) == 2
        assert chain.delete_old(timezone.now()) == 0
        chain.seal_new()
        assert problems() == []
        subjects = AuditEvent.objects.order_by("position").values_list("subject", flat=True)
        assert list(subjects) == ["run 2", "2 events"]

    def test_many_are_deleted_in_parts(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(chain, "MAX_DELETED", 2)
        settings.AUDIT_KEEP_DAYS = 30
        record(3)
        AuditEvent.objects.update(at=timezone.now() - timedelta(days=31))
        chain.seal_new()
        assert [chain.delete_old(timezone.now()) for _ in range(3)] == [2, 1, 0]
        chain.seal_new()
        assert problems() == []

    def test_what_is_not_sealed_yet_stays(self, settings: Settings) -> None:
        settings.AUDIT_KEEP_DAYS = 30
        record(1)
        AuditEvent.objects.update(at=timezone.now() - timedelta(days=31))
        assert chain.delete_old(timezone.now()) == 0

    def test_nothing_is_deleted_if_the_setting_is_0(self, settings: Settings) -> None:
        settings.AUDIT_KEEP_DAYS = 0
        record(1)
        chain.seal_new()
        assert chain.delete_old(timezone.now() + timedelta(days=10_000)) == 0


def test_a_head_that_a_full_disk_has_cut_off_swallows_none(heads: Path) -> None:
    record(1)
    chain.seal_new()
    heads.write_text(heads.read_text()[:-40])
    record(1)
    chain.seal_new()
    assert [line.split()[0] for line in heads.read_text().splitlines()] == ["1", "2"]
    assert problems() == []
    AuditEvent.objects.filter(position=2).delete()
    assert problems() == ["The events 2 to 2, the last ones, are missing."]


def test_a_new_file_of_heads_begins_with_the_next_batch(heads: Path) -> None:
    record(2)
    chain.seal_new()
    heads.rename(heads.with_suffix(".old"))
    record(1)
    chain.seal_new()
    assert problems() == []


def test_a_full_disk_stops_nothing(heads: Path, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.AUDIT_HEADS = str(heads / "no" / "folder")
    record(1)
    assert chain.seal_new() == 1
    assert "The head of the audit trail could not be written" in caplog.text
