"""The curated environments: their files, downloads and comparisons."""

from __future__ import annotations

import pytest

from environments.curated import SETS, CuratedSet, curated_lock
from environments.lock_file import download_bytes, read_lock
from tests.environments.locks import locked
from tests.pages.builders import text_of
from tests.people import client_of, make_viewer
from workspaces.access import Principal

NAME = "TrainHub-PyTorch-2.13"


def test_there_are_several_versions_of_pytorch_and_tensorflow() -> None:
    names = [item.spec.name for item in SETS]
    assert len([name for name in names if name.startswith("TrainHub-PyTorch-")]) >= 4
    assert {"TrainHub-TensorFlow-2.20", "TrainHub-TensorFlow-CPU-2.21", "TrainHub-TensorFlow-CUDA-2.21"} <= {
        *names
    }
    assert len({item.position for item in SETS}) == len(SETS)
    assert names[0] == NAME


@pytest.mark.parametrize("item", [item for item in SETS if item.lock], ids=lambda item: item.spec.name)
def test_the_lock_has_the_requested_packages_and_the_figures(item: CuratedSet) -> None:
    packages = read_lock(item.lock)
    assert item.install.packages == len(packages)
    assert round(download_bytes(packages) or 0, -6) == item.install.download_bytes
    versions = {package.name: package.version for package in packages}
    for requirement in item.spec.requirements:
        name, _, version = requirement.partition("==")
        assert versions[name.partition("[")[0]].startswith(version.rstrip("*"))


@pytest.mark.usefixtures("db", "valkey")
class TestPages:
    def test_files_can_be_downloaded(self, who: Principal) -> None:
        viewer = client_of(make_viewer())
        page = text_of(viewer, f"/environments/{NAME}/")
        address = f"/environments/{NAME}/versions/1/requirements"
        assert f"{address}.lock" in page
        assert "torch==2.13.0\n" in text_of(viewer, f"{address}.txt")
        assert text_of(viewer, f"{address}.lock") == curated_lock(NAME)
        body = viewer.get(f"/api/v1/environments/{NAME}/versions/1/").json()
        assert (body["lock"], body["builds"], body["state"]) == (curated_lock(NAME), [], "locked")
        assert viewer.get(f"/environments/{NAME}/versions/2/requirements.txt").status_code == 404

    def test_is_compared_with_another_and_with_an_own_version(self, who: Principal) -> None:
        viewer = client_of(make_viewer())
        page = text_of(viewer, f"/environments/{NAME}/?with=TrainHub-PyTorch-2.12")
        assert "2.12.1" in page or "2.12.0" in page
        lock = curated_lock(NAME)
        locked(who, "mine", "torch", lock=lock)
        assert "Both have the same packages" in text_of(viewer, f"/environments/{NAME}/?with=mine:1")
        assert "Both have the same packages" in text_of(viewer, f"/environments/mine/versions/1/?with={NAME}")
        page = text_of(viewer, "/environments/mine/versions/1/?with=TrainHub-TensorFlow-2.21")
        assert "tensorflow" in page.lower()
        assert "Compare with" in text_of(viewer, "/environments/mine/versions/1/?with=none:1")
