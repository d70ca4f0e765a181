"""Models on this machine alone, and what is refused before a hub is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.azureml.stub_hub import StubHub
from trainhub_azureml.exceptions import ModelNotFoundException, UserErrorException
from trainhub_azureml.models.model import Model
from trainhub_azureml.workspace import Workspace
from trainhub_sdk.uploads.model_upload import model_files


class TestPathsWithoutAHub:
    def test_the_newest_version_of_the_cache(self, own_folder: Path) -> None:
        for version, name in (("2", "net"), ("10", "net"), ("9", "other")):
            (own_folder / "azureml-models" / "birds" / version / name).mkdir(parents=True)
        assert Model.get_model_path("birds") == "azureml-models/birds/10/net"
        assert Model.get_model_path("birds", 9) == "azureml-models/birds/9/other"

    def test_the_folder_of_a_variable(self, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZUREML_MODEL_DIR", str(own_folder / "models"))
        (own_folder / "models" / "birds" / "1").mkdir(parents=True)
        for name in ("a.bin", "b.bin"):
            (own_folder / "models" / "birds" / "1" / name).touch()
        assert Model.get_model_path("birds") == str(own_folder / "models" / "birds" / "1")

    def test_a_file_of_the_name(self, own_folder: Path) -> None:
        (own_folder / "birds.pt").touch()
        assert Model.get_model_path("birds.pt") == "birds.pt"

    def test_none_says_how_to_sign_in(self) -> None:
        with pytest.raises(ModelNotFoundException, match=r"birds:3 on a hub \(none is known: sign in"):
            Model.get_model_path("birds", version=3)


class TestFiles:
    @pytest.mark.parametrize(
        ("path", "sentence"),
        [("missing", "missing does not exist: give a file"), ("empty", "empty is an empty folder")],
    )
    def test_no_files(self, path: str, sentence: str, own_folder: Path, stub_hub: StubHub) -> None:
        (own_folder / "empty").mkdir()
        with pytest.raises(UserErrorException, match=f"Model.register: {sentence}"):
            Model.register(Workspace("s", "g", "team"), path, "birds")

    def test_a_path_that_is_not_in_the_folder(self, own_folder: Path, stub_hub: StubHub) -> None:
        (own_folder / "net").mkdir()
        (own_folder / "net" / "a.bin").touch()
        with pytest.raises(UserErrorException, match=r"names b\.bin, which is not in net"):
            Model.register(Workspace("s", "g", "team"), "net", "birds", child_paths=["b.bin"])

    def test_the_files_of_a_folder_have_their_paths_in_it(self, own_folder: Path) -> None:
        (own_folder / "net" / "b").mkdir(parents=True)
        for name in ("a", "b/c"):
            (own_folder / "net" / name).touch()
        assert sorted(model_files("net")) == ["a", "b/c"]
        assert list(model_files("net/b/c")) == ["c"]
