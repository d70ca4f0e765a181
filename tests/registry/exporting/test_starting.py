from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from clusters.models import Cluster
from registry.errors import RegistryError
from registry.exports.export_start import start
from registry.exports.options import Options, candidates, check
from registry.exports.sources import factories
from registry.models import Export
from tests.people import make_contributor, make_viewer, principal_of
from tests.registry.exporting.builders import TYPED, run_of, version, with_example
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster(db: None) -> None:
    Cluster.objects.get_or_create(name="local")


@pytest.fixture
def own_blobs(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def overwritten(data: bytes) -> bytes:
    """As a failing disk leaves a zip: all names are there, and the content of the first file is damaged."""
    return data[:40] + b"\xff" * 4 + data[44:]


def cut_off(data: bytes) -> bytes:
    return data[: len(data) // 2]


def packed(export: Export) -> zipfile.ZipFile:
    return zipfile.ZipFile(blobs.path(run_of(export).spec["source"]["id"]))


class TestStart:
    def test_submits_an_ordinary_run_that_says_what_it_exports(self) -> None:
        export = start(version(), TYPED, principal_of(make_contributor()))
        run = run_of(export)
        assert (run.display_name, run.spec["script"], run.experiment.name) == (
            "digits version 1 to ONNX",
            "export_onnx.py",
            "onnx-export",
        )
        assert run.spec["environment"] == {"name": "TrainHub-ONNX-1.23", "version": ""}
        assert run.spec["tags"] == {"model": "digits", "version": "1", "export": "onnx"}
        assert (export.state, export.created_by) == ("waiting", make_contributor())

    def test_the_source_holds_our_script_the_code_of_the_run_and_what_is_asked_for(self) -> None:
        found = version("config.json")
        with packed(start(found, TYPED, principal_of(make_contributor()))) as archive:
            names = set(archive.namelist())
            told = json.loads(archive.read("export.json"))
        assert {"export_onnx.py", "onnx_export/pipeline.py", "source/src/model.py"} <= names
        assert not any("__pycache__" in name for name in names)
        assert [file["path"] for file in told["files"]] == ["model.pt", "config.json"]
        assert told["files"][0]["sha256"] == found.files.get(path="model.pt").sha256
        assert (told["model"], told["version"], told["script_folder"]) == ("digits", 1, "src")
        assert told["dynamic"] == {"": {"0": "batch"}}
        assert told["inputs"] == [
            {"name": "images", "shape": [1, 1, 8, 8], "dtype": "float32", "low": None, "high": None}
        ]

    def test_an_example_from_the_runs_outputs_travels_with_it(self) -> None:
        found = version()
        options = replace(TYPED, inputs=(), example=with_example(found))
        with packed(start(found, options, principal_of(make_contributor()))) as archive:
            assert "example/batch.npz" in archive.namelist()
            assert json.loads(archive.read("export.json"))["example"] == "batch.npz"

    def test_of_a_logged_model_only_its_own_folder_is_fetched(self) -> None:
        found = version("net/MLmodel", "net/data/model.pth", "net/code/net.py")
        with packed(
            start(found, replace(TYPED, file="net/MLmodel"), principal_of(make_contributor()))
        ) as archive:
            told = json.loads(archive.read("export.json"))
        assert {file["path"] for file in told["files"]} == {
            "net/MLmodel",
            "net/data/model.pth",
            "net/code/net.py",
        }

    def test_a_version_without_a_run_is_exported_without_source(self) -> None:
        found = version()
        assert found.run is not None
        found.run.delete()
        found.refresh_from_db()
        with packed(start(found, TYPED, principal_of(make_contributor()))) as archive:
            assert not any(name.startswith("source/") for name in archive.namelist())

    @pytest.mark.usefixtures("own_blobs")
    @pytest.mark.parametrize("damage", [overwritten, cut_off])
    def test_a_source_that_is_damaged_on_the_disk_is_named_and_nothing_is_started(
        self, damage: Callable[[bytes], bytes]
    ) -> None:
        damaged = version()
        assert damaged.run is not None
        file = blobs.path(damaged.run.spec["source"]["id"])
        file.chmod(0o600)
        file.write_bytes(damage(file.read_bytes()))
        with pytest.raises(RegistryError, match="is damaged on the hub's disk; restore "):
            start(damaged, TYPED, principal_of(make_contributor()))
        assert not Export.objects.exists()
        # The form is still shown.
        assert factories(damaged) == ([] if damage is cut_off else ["model:make_model"])

    def test_a_source_that_is_too_large_to_pack_is_told_at_the_file(self, settings: Any) -> None:
        large = version()
        settings.MAX_SNAPSHOT_BYTES = 1000
        with pytest.raises(RegistryError, match="the source of the export cannot be packed") as refused:
            start(large, TYPED, principal_of(make_contributor()))
        assert refused.value.field == "file"

    def test_an_example_whose_bytes_are_gone_is_told_at_its_field(self) -> None:
        with_batch = version()
        options = replace(TYPED, inputs=(), example=with_example(with_batch))
        assert with_batch.run is not None
        blobs.path(with_batch.run.artifacts.get(path="batch.npz").sha256).unlink()
        with pytest.raises(RegistryError, match="no longer on the hub; choose another file") as refused:
            start(with_batch, options, principal_of(make_contributor()))
        assert refused.value.field == "example"

    def test_the_very_same_is_not_started_twice_at_once(self) -> None:
        found, who = version(), principal_of(make_contributor())
        start(found, TYPED, who)
        with pytest.raises(RegistryError, match="already running as run "):
            start(found, TYPED, who)
        assert start(found, replace(TYPED, opset=21), who).run is not None

    def test_what_the_run_is_refused_for_is_told_by_the_forms_field(self) -> None:
        found, who = version(), principal_of(make_contributor())
        for options, field in (
            (replace(TYPED, environment="nope"), "environment"),
            (replace(TYPED, cluster="moon"), "cluster"),
        ):
            with pytest.raises(RegistryError) as refused:
                start(found, options, who)
            assert refused.value.field == field
        assert not Export.objects.exists()

    def test_a_viewer_starts_none(self) -> None:
        with pytest.raises(PermissionDenied):
            start(version(), TYPED, principal_of(make_viewer()))
        assert not Export.objects.exists()


class TestCheck:
    @pytest.mark.parametrize(
        ("change", "field", "why"),
        [
            ({"file": "nope.pt"}, "file", "is not a file of this version; choose one of: model.pt"),
            ({"inputs": ()}, "inputs", "is required"),
            ({"example": "outputs/saved/model.pt"}, "example", "give one of the two"),
            ({"inputs": (), "example": "x.npy"}, "example", "is no such file"),
            ({"factory": "model.make"}, "factory", "write MODULE:FUNCTION"),
            ({"factory": "os;x:y"}, "factory", "write MODULE:FUNCTION"),
            ({"relative": float("nan")}, "relative", "from 0 to 1000"),
            ({"absolute": -1.0}, "absolute", "from 0 to 1000"),
            ({"opset": 7}, "opset", "from 18 to 23"),
        ],
    )
    def test_names_the_field_and_the_remedy(self, change: dict[str, Any], field: str, why: str) -> None:
        with pytest.raises(RegistryError, match=why) as refused:
            check(replace(TYPED, **change), version())
        assert refused.value.field == field

    def test_without_any_file_that_could_be_it_the_files_are_listed(self) -> None:
        with pytest.raises(RegistryError, match=r"has no file that PyTorch writes .* it has: notes\.txt"):
            check(replace(TYPED, file=""), version("notes.txt", path="saved/notes.txt"))

    def test_a_program_brings_its_own_example(self) -> None:
        check(Options(file="model.pt2"), version("model.pt2"))


class TestOffers:
    def test_the_likeliest_file_comes_first(self) -> None:
        assert candidates(version("net/MLmodel", "best.pt2", "notes.txt", "net/data/model.pth")) == [
            "best.pt2",
            "net/MLmodel",
            "model.pt",
            "net/data/model.pth",
        ]

    def test_functions_of_the_source_that_need_no_argument(self) -> None:
        with_source = version()
        assert factories(with_source) == ["model:make_model"]
        assert with_source.run is not None
        with_source.run.delete()
        with_source.refresh_from_db()
        assert factories(with_source) == []
