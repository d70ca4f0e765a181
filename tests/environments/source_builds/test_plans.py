"""What the hub does with packages without a wheel: it locks everything else, and runs none of their code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from environments import changes, made_versions, resolver
from environments.errors import Unresolvable
from environments.kinds.all_kinds import maker_of
from environments.lock_file import read_lock
from environments.models import BuiltWheel, EnvironmentVersion
from environments.packages import package_store
from environments.source_builds.recipe import recipe_for
from jobs.version_builds.making_nodes import waiting_reason
from jobs.version_builds.progress import continue_version
from tests.environments.package_index import PackageIndex
from tests.environments.source_builds.source_packages import make_source, write_source
from tests.people import make_person, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.states import Role
from workspaces.stored_files.blob_writer import BlobWriter

SETUP = "open({path!r}, 'w').close()\nfrom setuptools import setup\nsetup()\n"


def resolved(who: Principal, *lines: str, name: str = "mine") -> EnvironmentVersion:
    version = changes.create_version(who, name, "pip", "\n".join(lines), "3.11")
    resolver.resolve(version.pk)
    version.refresh_from_db()
    return version


def upload(folder: Path, name: str, needs: str = "") -> tuple[str, dict[str, int]]:
    """Stores a wheel as a node would; returns the name of the file and what was uploaded."""
    index = PackageIndex(folder)
    index.add(name, "1.0", *filter(None, (needs,)))
    filename = f"{name}-1.0-py3-none-any.whl"
    with BlobWriter() as writer:
        writer.write((folder / filename).read_bytes())
        sha256 = writer.finish()
    return filename, {sha256: writer.size}


def accept(version: EnvironmentVersion, filename: str, files: dict[str, int]) -> str:
    wheels = [{"filename": filename, "sha256": sha256} for sha256 in files]
    result = {"wheels": wheels, "node": "alpha", "glibc": "2.36"}
    return maker_of(version).accept_result(version, result, files)


def test_a_source_is_locked_without_running_its_code(
    who: Principal, index: PackageIndex, tmp_path: Path
) -> None:
    index.add("base")
    marker = tmp_path / "has-run"
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: old\nVersion: 1.0\nRequires-Dist: base\n",
        "setup.py": SETUP.format(path=str(marker)),
    }
    index.add("setuptools", "80.0")
    index.add("wheel")
    sha256 = write_source(index.folder, "old-1.0", files)
    version = resolved(who, "old", "--no-binary old")
    assert version.state == "building", version.failure
    draft = json.loads(version.draft)
    assert (draft["kind"], draft["packages"][0]["sha256"]) == ("wheels", sha256)
    assert [package.name for package in read_lock(draft["lock"])] == ["base"]
    assert [package.name for package in read_lock(draft["build_lock"])] == ["base", "setuptools", "wheel"]
    assert not marker.exists()
    for_builds = version.files.filter(is_for_build=True).values_list("filename", flat=True)
    assert set(for_builds) == {
        "old-1.0.tar.gz",
        "setuptools-80.0-py3-none-any.whl",
        "wheel-1.0-py3-none-any.whl",
    }
    assert not package_store.is_stored(version.files.get(filename="wheel-1.0-py3-none-any.whl"))


def test_what_was_built_is_used_again_in_its_workspace_only(
    who: Principal, index: PackageIndex, tmp_path: Path
) -> None:
    index.add("base")
    make_source(index.folder, "compiled", needs="base")
    version = resolved(who, "compiled", "--no-binary compiled")
    folder = tmp_path / "built"
    folder.mkdir()
    filename, files = upload(folder, "compiled")
    draft = json.loads(version.draft)
    version.draft = json.dumps(draft | {"lock": draft["lock"].rstrip("\n")})
    lock = accept(version, filename, files)
    assert [package.name for package in read_lock(lock)] == ["base", "compiled"]
    (row,) = BuiltWheel.objects.all()
    assert (row.node, row.project, row.workspace) == ("alpha", "compiled", who.workspace)
    assert row.glibc == ""  # the name says that nothing in it is compiled
    (sha256,) = files
    assert f"--hash=sha256:{sha256}" in lock
    assert package_store.is_stored(version.files.get(filename=filename))

    again = resolved(who, "compiled==1.0", "--no-binary compiled", name="other")
    assert (again.state, again.lock) == ("locked", lock)
    stranger = principal_of(make_person("mallory", Role.CONTRIBUTOR, make_workspace("elsewhere")))
    theirs = resolved(stranger, "compiled", "--no-binary compiled")
    assert theirs.state == "building"
    named = {"wheels": [{"filename": filename, "sha256": sha256}]}
    with pytest.raises(Unresolvable, match="was not uploaded"):
        maker_of(theirs).accept_result(theirs, named, {})


def test_what_two_people_want_at_once_is_built_once(
    who: Principal, index: PackageIndex, tmp_path: Path
) -> None:
    index.add("base")
    make_source(index.folder, "compiled")
    first, second = (resolved(who, "compiled", "--no-binary compiled", name=name) for name in ("one", "two"))
    assert maker_of(second).awaits_other(second)
    assert not maker_of(first).awaits_other(first)
    assert "builds the same packages for an earlier version" in waiting_reason(second)
    continue_version(second.pk)
    second.refresh_from_db()
    assert second.state == "building"
    folder = tmp_path / "built"
    folder.mkdir()
    filename, files = upload(folder, "compiled")
    wheels = [{"filename": filename, "sha256": sha256} for sha256 in files]
    made_versions.lock_with_result(first, {"wheels": wheels, "node": "alpha"}, files)
    continue_version(second.pk)
    for version in (first, second):
        version.refresh_from_db()
    assert (second.state, second.lock) == ("locked", first.lock)
    assert BuiltWheel.objects.count() == 1


@pytest.mark.parametrize(
    ("wheel", "words"),
    [
        (("compiled", "torch>=2"), "needs torch>=2, as only its build shows. Add it to the requirements"),
        (("another", ""), "The node has built no wheel of compiled"),
    ],
)
def test_another_wheel_than_was_ordered_is_refused(
    who: Principal, index: PackageIndex, tmp_path: Path, wheel: tuple[str, str], words: str
) -> None:
    index.add("base")
    make_source(index.folder, "compiled")
    version = resolved(who, "compiled", "--no-binary compiled")
    folder = tmp_path / "built"
    folder.mkdir()
    with pytest.raises(Unresolvable, match=words):
        accept(version, *upload(folder, *wheel))
    assert not BuiltWheel.objects.exists()


def test_horovod_is_built_for_the_framework_of_the_lock(who: Principal, index: PackageIndex) -> None:
    for name in ("cloudpickle", "psutil", "pyyaml", "packaging", "setuptools", "wheel"):
        index.add(name)
    index.add("cffi", "2.0")
    write_source(index.folder, "horovod-0.28.1", {"setup.py": "raise SystemExit"})
    assert "Add torch or tensorflow or tensorflow-cpu" in resolved(who, "horovod==0.28.1").failure
    index.add("torch", "2.13.0")
    version = resolved(who, "horovod==0.28.1", "torch")
    assert version.state == "building", version.failure
    (package,) = json.loads(version.draft)["packages"]
    assert package["variables"]["HOROVOD_WITH_PYTORCH"] == "1"
    assert package["variables"]["HOROVOD_WITHOUT_TENSORFLOW"] == "1"
    assert [flags for _, flags in package["compiler_flags"]] == [["-std=c++20"]]
    assert "horovod.torch" in package["checks"][0]
    index.add("torch", "2.11.0")
    older = resolved(who, "horovod==0.28.1", "torch==2.11.0")
    (other,) = json.loads(older.draft)["packages"]
    assert other["compiler_flags"] == []
    assert other["build_key"] != package["build_key"]
    recipe = recipe_for("horovod", "0.28.1")
    assert recipe is not None
    assert recipe_for("horovod", "0.27.0") is None


def test_deepspeed_brings_what_only_its_build_would_show(who: Principal, index: PackageIndex) -> None:
    recipe = recipe_for("deepspeed", "0.19.8")
    assert recipe is not None
    assert recipe_for("deepspeed", "0.18.9") is None
    for text in (*recipe.dependencies, *recipe.build_requirements):
        index.add(Requirement(text).name.replace("-", "_"), "30.0")
    sha256 = write_source(index.folder, "deepspeed-0.19.8", {"setup.py": "raise SystemExit"})
    version = resolved(who, "deepspeed==0.19.8")
    assert version.state == "building", version.failure
    draft = json.loads(version.draft)
    (package,) = draft["packages"]
    assert {item.name for item in read_lock(draft["lock"])} >= {"torch", "py-cpuinfo", "nvidia-ml-py"}
    assert (package["sha256"], package["compiler_flags"]) == (sha256, [])
    assert package["variables"] == {"DS_BUILD_OPS": "0", "DS_ACCELERATOR": "cpu"}
