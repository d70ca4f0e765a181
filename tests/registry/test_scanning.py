"""What loading a model's files would run: said before anybody does. Files of all formats:
tests/attacks/scan."""

from __future__ import annotations

import json
import pickle
import subprocess
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from registry.models import ModelVersion
from registry.registration import register
from registry.scanning import versions
from registry.scanning.file_scan import verdict_for_file
from registry.scanning.verdict_names import (
    CLEAN,
    CONTAINS_CODE,
    DANGEROUS,
    NOT_SCANNED,
    PENDING,
    RULES,
    Verdict,
    combine,
    worst,
)
from registry.scanning.verdicts import entry, verdict
from tests.attacks.scan.builders import Calls, evil, plain, torch_zip
from tests.people import make_contributor, make_workspace
from tests.registry.builders import add_output, run_with
from workspaces.stored_files import blobs

EVIL, PLAIN = evil(), plain()
STRANGE = pickle.dumps(Calls(timedelta, 1))


def scanned(tmp_path: Path, name: str, data: bytes) -> Verdict:
    path = tmp_path / "file"
    path.write_bytes(data)
    return verdict_for_file(path, name)


class TestVerdict:
    def test_names_what_would_be_imported_the_worst_first(self, tmp_path: Path) -> None:
        found = scanned(tmp_path, "a.pkl", STRANGE[:-1] + EVIL[2:])
        assert found.findings == ("subprocess.call", "datetime.timedelta")

    def test_nothing_of_it_is_run(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        scanned(tmp_path, "a.pkl", pickle.dumps(Calls(Path.write_text, mark, "ran")))
        assert not mark.exists()

    def test_names_that_no_database_takes_are_told_all_the_same(self, tmp_path: Path) -> None:
        found = scanned(tmp_path, "a.pkl", b"\x80\x04\x8c\x04o\x00\xed\x9f\x8c\x01x\x93.").to_json()
        assert found["verdict"] != CLEAN
        assert "\x00" not in json.dumps(found, ensure_ascii=False)

    def test_long_data_is_passed_over_without_being_held(self, tmp_path: Path) -> None:
        data = pickle.dumps([b"x" * 50_000_000, Calls(subprocess.call, ["true"])])
        assert scanned(tmp_path, "a.pkl", data).verdict == DANGEROUS

    def test_weights_that_look_like_something_else_by_chance_are_weights(self, tmp_path: Path) -> None:
        for beginning in (
            b"MZ",
            b"#!",
            b"\x1f\x8b",
            b"\x7fELF",
            b"x\x9c",
            b"\x80\x02",
            b"\x93NUMPY",
            b"cab\ncd\n\x84abcd",
        ):
            data = torch_zip(pickle.dumps({}, 2), **{"net/data/1": beginning + b"\0" * 62})
            assert scanned(tmp_path, "a.pt", data).verdict == CLEAN, beginning

    def test_says_which_file_of_an_archive_is_meant(self, tmp_path: Path) -> None:
        assert "net/data.pkl" in scanned(tmp_path, "a.pt", torch_zip(EVIL)).note

    def test_the_worst_of_several_counts(self) -> None:
        assert worst([CLEAN, DANGEROUS, NOT_SCANNED]) == DANGEROUS
        assert worst([CLEAN, CONTAINS_CODE, NOT_SCANNED]) == NOT_SCANNED
        assert worst([]) == CLEAN
        found = combine(
            [("a", Verdict(CONTAINS_CODE, ("x",))), ("b", Verdict(DANGEROUS, ("y",), "It bites."))]
        )
        assert found == Verdict(DANGEROUS, ("y", "x"), "b: It bites.")


@pytest.mark.django_db
class TestVersion:
    def version(self, **files: bytes) -> ModelVersion:
        run = run_with()
        for name, data in files.items():
            add_output(run, f"saved/{name}.pkl", content=data)
        return register(make_workspace(), "digits", run, "saved", make_contributor())

    def test_keeps_a_verdict_for_each_file_and_tells_mlflow(self) -> None:
        version = self.version(good=PLAIN, bad=EVIL)
        versions.scan(version.pk)
        version.refresh_from_db()
        assert version.scan is not None
        assert {path: item["verdict"] for path, item in version.scan.items()} == {
            "bad.pkl": DANGEROUS,
            "good.pkl": CLEAN,
        }
        assert version.scan["bad.pkl"]["findings"] == ["subprocess.call"]
        assert version.tags == {versions.TAG: DANGEROUS}

    @pytest.mark.parametrize("limit", [{"MODEL_SCAN_SECONDS": 1}, {"MODEL_SCAN_MEMORY_BYTES": 2**28}])
    def test_a_file_that_takes_too_much_is_not_scanned_and_the_others_are_read(
        self, settings: Any, limit: Any
    ) -> None:
        for name, value in limit.items():
            setattr(settings, name, value)
        version = self.version(a=PLAIN, b=b"\x80\x04" + b"J\0\0\1\0" * 4_000_000, c=EVIL)
        versions.scan(version.pk)
        version.refresh_from_db()
        assert version.scan is not None
        assert [version.scan[f"{name}.pkl"]["verdict"] for name in "abc"] == [CLEAN, NOT_SCANNED, DANGEROUS]

    def test_thousands_of_slow_files_do_not_keep_the_worker_for_days(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "MAX_S", -1)
        version = self.version(a=PLAIN, b=EVIL)
        found = versions.verdicts(list(version.files.all()))
        assert {item["verdict"] for item in found.values()} == {NOT_SCANNED}
        assert "too long" in found["a.pkl"]["note"]

    def test_a_process_that_hangs_is_ended_and_its_files_are_not_scanned(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Python itself takes longer to start.
        monkeypatch.setattr(versions, "MAX_S", 0.05)
        version = self.version(a=PLAIN)
        (entry,) = versions.verdicts(list(version.files.all())).values()
        assert (entry["verdict"], entry["note"][:25]) == (NOT_SCANNED, "The scanner took too long")

    def test_a_file_without_bytes_is_not_scanned_and_the_others_are(self) -> None:
        version = self.version(a=PLAIN, b=EVIL)
        blobs.path(version.files.get(path="a.pkl").sha256).unlink()
        versions.scan(version.pk)
        version.refresh_from_db()
        assert version.scan is not None
        assert version.scan["a.pkl"]["note"] == "Its bytes are missing on the hub."
        assert version.scan["b.pkl"]["verdict"] == DANGEROUS

    def test_one_that_was_deleted_before_its_turn_holds_up_nothing(self) -> None:
        version = self.version(a=PLAIN)
        number = version.pk
        version.delete()
        assert versions.scan(number) is True

    def test_one_at_a_time_so_that_the_worker_keeps_its_other_threads(self) -> None:
        version = self.version(good=PLAIN)
        ModelVersion.objects.update(created_at=timezone.now() - 2 * versions.MISSED_AFTER)
        with versions._at_it:
            assert versions.scan(version.pk) is False
            versions.scan_missed()
        version.refresh_from_db()
        assert version.scan is None
        versions.scan_missed()
        version.refresh_from_db()
        assert version.scan is not None

    def test_what_was_missed_is_scanned_later(self) -> None:
        version = self.version(good=PLAIN)
        versions.scan_missed()
        version.refresh_from_db()
        assert version.scan is None
        ModelVersion.objects.update(created_at=timezone.now() - 2 * versions.MISSED_AFTER)
        versions.scan_missed()
        version.refresh_from_db()
        assert version.scan is not None

    def test_what_older_rules_found_clean_is_pending_until_it_is_scanned_again(self) -> None:
        version = self.version(good=PLAIN, bad=EVIL)
        old = {name: {"verdict": CLEAN, "findings": [], "note": ""} for name in ("good.pkl", "bad.pkl")}
        ModelVersion.objects.update(
            scan=old,
            scan_rules=RULES - 1,
            tags={versions.TAG: PENDING},
            created_at=timezone.now() - 2 * versions.MISSED_AFTER,
        )
        version.refresh_from_db()
        assert verdict(version) == verdict(version, "bad.pkl") == PENDING
        assert "again" in entry(version, "bad.pkl")["note"]
        versions.scan_missed()
        version.refresh_from_db()
        assert verdict(version) == verdict(version, "bad.pkl") == DANGEROUS
        assert (version.scan_rules, version.tags) == (RULES, {versions.TAG: DANGEROUS})

    def test_what_older_rules_found_dangerous_stays_so_meanwhile(self) -> None:
        version = self.version(bad=EVIL)
        ModelVersion.objects.update(
            scan={"bad.pkl": {"verdict": DANGEROUS, "findings": ["os.system"], "note": ""}}
        )
        version.refresh_from_db()
        assert verdict(version) == verdict(version, "bad.pkl") == DANGEROUS

    def test_the_upgrade_renames_old_verdicts_and_takes_back_what_mlflow_was_told(self) -> None:
        version = self.version(good=PLAIN, odd=STRANGE, raw=b"x")
        old = {"good.pkl": CLEAN, "odd.pkl": "suspicious", "raw.pkl": "unscanned"}
        scan = {path: {"verdict": word, "findings": ["a.b"], "note": "n"} for path, word in old.items()}
        ModelVersion.objects.update(scan=scan, tags={versions.TAG: "unscanned", "mine": "kept"})
        import_module("registry.migrations.0003_scan_rules").rename_verdicts(apps, connection.schema_editor())
        version.refresh_from_db()
        assert version.scan is not None
        verdicts = {path: item["verdict"] for path, item in version.scan.items()}
        assert verdicts == {"good.pkl": CLEAN, "odd.pkl": CONTAINS_CODE, "raw.pkl": NOT_SCANNED}
        assert version.scan["odd.pkl"]["findings"] == ["a.b"]
        assert (version.tags, version.scan_rules) == ({versions.TAG: PENDING, "mine": "kept"}, 0)
