"""What loading a model's files would run: said before anybody does."""

from __future__ import annotations

import bz2
import collections
import gzip
import io
import itertools
import json
import pickle
import subprocess
import zipfile
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy
import pytest
from django.utils import timezone

from registry.models import ModelVersion
from registry.registering import register
from registry.scanning import versions
from registry.scanning.reading import LAMBDA_FINDING, Verdict, may_hold_pickle, verdict_of
from registry.scanning.words import CLEAN, DANGEROUS, SUSPICIOUS, UNSCANNED, worst
from tests.people import make_contributor, make_workspace
from tests.registry.builders import add_output, run_with


class Calls:
    """Pickles as a call of `what`: what loading it would do."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.told = what, arguments

    def __reduce__(self) -> Any:
        return self.told


EVIL = pickle.dumps(Calls(subprocess.call, ["true"]))
PLAIN = pickle.dumps({"weights": [1.0, 2.0], "kind": collections.OrderedDict(a=1)})
STRANGE = pickle.dumps(Calls(timedelta, 1))


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    numpy.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def scanned(tmp_path: Path, name: str, data: bytes) -> Verdict:
    path = tmp_path / "file"
    path.write_bytes(data)
    return verdict_of(path, name)


class TestVerdict:
    @pytest.mark.parametrize(
        ("name", "data", "verdict"),
        [
            ("a.pkl", PLAIN, CLEAN),
            ("a.pkl", STRANGE, SUSPICIOUS),
            ("a.pkl", EVIL, DANGEROUS),
            ("a.pkl", b"not a pickle at all", UNSCANNED),
            ("a.joblib", PLAIN + b"raw bytes of an array", UNSCANNED),
            ("a.joblib", EVIL + b"raw bytes of an array", DANGEROUS),
            ("a.pt", zipped({"model/data.pkl": PLAIN, "model/data/0": b"\x00" * 64}), CLEAN),
            ("a.pt", zipped({"model/data.pkl": EVIL, "model/data/0": b"\x00" * 64}), DANGEROUS),
            ("a.pth", EVIL, DANGEROUS),
            ("a.bin", b"\x08\x07 weights of an ONNX model", CLEAN),
            ("a.npy", npy(numpy.zeros(4)), CLEAN),
            ("a.npy", npy(numpy.array([Calls(subprocess.call, ["true"])], dtype=object)), DANGEROUS),
            ("a.npz", zipped({"x.npy": npy(numpy.array([Calls(subprocess.call, ["true"])], dtype=object))}), DANGEROUS),
            ("a.pkl.gz", gzip.compress(EVIL), DANGEROUS),
            ("a.pkl.bz2", bz2.compress(PLAIN), CLEAN),
            ("a.joblib", zlib.compress(EVIL), DANGEROUS),
            ("a.joblib", zlib.compress(PLAIN)[:-6], UNSCANNED),
            ("a.7z", b"7z\xbc\xaf\x27\x1c", UNSCANNED),
            ("a.zip", b"PK\x03\x04 and no more", UNSCANNED),
        ],
        ids=itertools.count(),  # bytes with the time in them would name a test otherwise in each process
    )
    def test_of_each_kind_of_file(self, tmp_path: Path, name: str, data: bytes, verdict: str) -> None:
        assert scanned(tmp_path, name, data).verdict == verdict

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

    def test_a_pickle_behind_another_one_is_seen(self, tmp_path: Path) -> None:
        assert scanned(tmp_path, "a.pkl", PLAIN + EVIL).verdict == DANGEROUS

    def test_a_pickle_with_a_zip_behind_it_is_read_as_a_pickle(self, tmp_path: Path) -> None:
        assert scanned(tmp_path, "a.pkl", EVIL + zipped({"harmless.txt": b"x"})).verdict == DANGEROUS

    def test_long_data_is_passed_over_without_being_held(self, tmp_path: Path) -> None:
        data = pickle.dumps([b"x" * 50_000_000, Calls(subprocess.call, ["true"])])
        assert scanned(tmp_path, "a.pkl", data).verdict == DANGEROUS

    def test_a_keras_lambda_is_told(self, tmp_path: Path) -> None:
        config = json.dumps({"config": {"layers": [{"class_name": "Dense"}, {"class_name": "Lambda"}]}}).encode()
        assert scanned(tmp_path, "a.keras", zipped({"config.json": config})).findings == (LAMBDA_FINDING,)
        assert scanned(tmp_path, "a.h5", b"\x89HDF\r\n" + b"." * 3_000_000 + config).findings == (LAMBDA_FINDING,)

    def test_what_can_hold_a_pickle_is_known_by_name_or_by_its_beginning(self) -> None:
        assert may_hold_pickle("net/Model.PKL", b"")
        assert may_hold_pickle("weights", PLAIN[:8])
        assert not may_hold_pickle("model.safetensors", b"\x10\x00\x00\x00")

    def test_the_worst_of_several_counts(self) -> None:
        assert worst([CLEAN, DANGEROUS, UNSCANNED]) == DANGEROUS
        assert worst([]) == CLEAN


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
        assert {path: item["verdict"] for path, item in version.scan.items()} == {"bad.pkl": DANGEROUS, "good.pkl": CLEAN}
        assert version.scan["bad.pkl"]["findings"] == ["subprocess.call"]
        assert version.tags == {versions.TAG: DANGEROUS}

    @pytest.mark.parametrize("limit", [{"MODEL_SCAN_SECONDS": 1}, {"MODEL_SCAN_MEMORY_BYTES": 2**28}])
    def test_a_file_that_takes_too_much_is_left_unscanned_and_the_others_are_read(self, settings: Any, limit: Any) -> None:
        for name, value in limit.items():
            setattr(settings, name, value)
        version = self.version(a=PLAIN, b=b"\x80\x04" + b"\x94" * 4_000_000, c=EVIL)
        versions.scan(version.pk)
        version.refresh_from_db()
        assert version.scan is not None
        assert [version.scan[f"{name}.pkl"]["verdict"] for name in "abc"] == [CLEAN, UNSCANNED, DANGEROUS]

    def test_thousands_of_slow_files_do_not_keep_the_worker_for_days(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(versions, "MOST_S", -1)
        version = self.version(a=PLAIN, b=EVIL)
        found = versions.verdicts(list(version.files.all()))
        assert {item["verdict"] for item in found.values()} == {UNSCANNED}
        assert "too long" in found["a.pkl"]["note"]

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
