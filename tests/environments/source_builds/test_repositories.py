"""Packages from git repositories: what the hub fetches from a real git server, and what it refuses."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from environments import changes, made_versions, resolver
from environments.lock_file import read_lock
from environments.models import EnvironmentVersion, PackageFile
from environments.packages import package_store
from environments.repositories import git_process
from tests.environments.package_index import PackageIndex
from tests.environments.source_builds.git_server import GitServer
from tests.node.link import wheels
from tests.people import make_owner, principal_of
from workspaces.access import Principal
from workspaces.secrets import store
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import BlobWriter

PYPROJECT = """
[build-system]
requires = ["base"]
build-backend = "backend"
[project]
name = "gitty"
version = "1.5"
requires-python = ">=3.9"
dependencies = ["base"]
[project.optional-dependencies]
more = ["extra"]
"""


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with GitServer(tmp_path_factory.mktemp("repositories")).serving() as server:
        yield server


@pytest.fixture
def base(index: PackageIndex) -> PackageIndex:
    for name in ("base", "extra"):
        index.add(name)
    return index


def resolved(who: Principal, *lines: str) -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "pip", "\n".join(lines), "3.11")
    resolver.resolve(version.pk)
    version.refresh_from_db()
    return version


def package_of(version: EnvironmentVersion) -> dict[str, Any]:
    assert version.state == "building", version.failure
    (package,) = json.loads(version.draft)["packages"]
    return dict(package)


def test_a_branch_is_pinned_to_the_commit_that_it_names_now(
    who: Principal, base: PackageIndex, git: GitServer
) -> None:
    # Attributes of the repository, with which git would leave files out or run a program.
    attributes = "*.py export-ignore filter=steal\n"
    first = git.commit("pinned", {"pyproject.toml": PYPROJECT, "gitty.py": "x", ".gitattributes": attributes})
    url = git.url("pinned")
    one = resolved(who, f"gitty[more] @ git+{url}@main")
    package = package_of(one)
    assert (package["version"], package["origin"]) == ("1.5", f"git+{url}@{first}")
    names = {item.name for item in read_lock(json.loads(one.draft)["lock"])}
    assert names == {"base", "extra"}
    row = one.files.get(project="gitty")
    assert row.is_for_build
    assert package_store.is_stored(row)
    with tarfile.open(blobs.path(row.sha256)) as archive:
        assert {f"gitty-{first}/{name}" for name in ("gitty.py", "pyproject.toml")} <= {*archive.getnames()}

    second = git.commit("pinned", {"gitty.py": "y"})
    two = package_of(resolved(who, f"git+{url}@main#egg=gitty"))
    assert two["origin"] == f"git+{url}@{second}"
    assert two["build_key"] != package["build_key"]
    # The same commit under another name is the same file, also when the hub has removed it meanwhile.
    PackageFile.objects.all().delete()
    blobs.path(row.sha256).unlink()
    package_store.fetch_now(row)
    assert package_of(resolved(who, f"gitty @ git+{url}@{first}"))["sha256"] == row.sha256


def test_the_wheel_says_the_version_where_only_its_build_shows_it(
    who: Principal, base: PackageIndex, git: GitServer, tmp_path: Path, client: Client
) -> None:
    text = PYPROJECT.replace('version = "1.5"', 'dynamic = ["version"]').replace("gitty", "inner")
    git.commit("folder", {"python/inner/pyproject.toml": text, "other.txt": "x"}, tag="v2.5")
    address = f"git+{git.url('folder')}@v2.5#subdirectory=python/inner"
    version = resolved(who, f"inner @ {address}")
    package = package_of(version)
    assert package["variables"]["SETUPTOOLS_SCM_PRETEND_VERSION"] == package["version"] == "2.5"
    with tarfile.open(blobs.path(package["sha256"])) as archive:
        assert [name.partition("/")[2] for name in archive.getnames()] == ["", "pyproject.toml"]

    wheels.make(tmp_path, "inner", "2.6", needs=("base",))
    with BlobWriter() as writer:
        writer.write((tmp_path / "inner-2.6-py3-none-any.whl").read_bytes())
        sha256 = writer.finish()
    result = {"wheels": [{"filename": "inner-2.6-py3-none-any.whl", "sha256": sha256}], "node": "alpha"}
    made_versions.lock_with_result(version, result, {sha256: writer.size})
    version.refresh_from_db()
    (inner,) = [item for item in read_lock(version.lock) if item.name == "inner"]
    assert (inner.version, inner.index) == ("2.6", package["origin"])
    client.force_login(who.user)
    assert package["origin"] in client.get("/environments/mine/versions/1/").content.decode()


def test_a_private_one_is_fetched_with_a_secret(
    who: Principal, base: PackageIndex, git: GitServer, tmp_path: Path, settings: Any
) -> None:
    settings.SECRETS_KEYRING = str(tmp_path / "keyring")
    store.put(principal_of(make_owner()), "GIT_TOKEN", "hunter2-hunter2", store.WORKSPACE)
    git.commit("private", {"pyproject.toml": PYPROJECT})
    address = git.url("private").removeprefix("http://")
    git.login = "oauth2:hunter2-hunter2"
    try:
        assert "wants a password, or does not exist" in resolved(who, f"gitty @ git+http://{address}").failure
        version = resolved(who, f"gitty @ git+http://oauth2:${{GIT_TOKEN}}@{address}")
        assert package_of(version)["origin"].startswith(f"git+http://{address}@")
        row = version.files.get(project="gitty")
        blobs.path(row.sha256).unlink()
        package_store.fetch_now(row)
        git.login = "oauth2:another"
        failure = resolved(who, f"gitty @ git+http://oauth2:${{GIT_TOKEN}}@{address}").failure
        assert "refuses the user or the secret GIT_TOKEN" in failure
        assert "hunter2" not in failure
    finally:
        git.login = ""
    missing = resolved(who, f"gitty @ git+http://${{NOTHING}}@{address}").failure
    assert "needs the secret NOTHING" in missing


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gitty @ git+{url}@v9", "has no tag, branch or commit v9. Check its spelling."),
        ("gitty @ git+{url}@abcdef12", "has no tag or branch abcdef12. Of a commit, write all 40 digits."),
        (f"gitty @ git+{{url}}@{'1' * 40}", "has no tag, branch or commit 1111"),
        ("gitty @ git+{url}#subdirectory=nothing", "has no folder nothing in its commit"),
        ("gitty @ git+{url}x", "There is no repository at"),
        ("other @ git+{url}", "has the package gitty, not other. Write gitty in that line."),
        ("gitty @ git+https://no.invalid/x", "The name no.invalid of the repository is not known"),
        ("gitty @ git+https://169.254.169.254/x", "at an address that the hub does not connect to"),
        ("gitty @ git+{url}\nnumpy==9", "No index has a package numpy"),
    ],
)
def test_what_cannot_be_fetched_says_why(
    who: Principal, base: PackageIndex, git: GitServer, line: str, words: str
) -> None:
    if not (git.folder / "gitty.git").exists():
        git.commit("gitty", {"pyproject.toml": PYPROJECT})
    version = resolved(who, line.replace("{url}", git.url("gitty")))
    assert words in version.failure


def test_a_server_that_redirects_or_hangs(
    who: Principal, base: PackageIndex, git: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"gitty @ git+{git.url('gitty')}"
    git.redirects = True
    assert "leads to another address; write that one instead" in resolved(who, line).failure
    git.redirects = False
    monkeypatch.setattr(git_process, "MAX_S", 1)
    git.is_silent = True
    try:
        assert "did not answer in time" in resolved(who, line).failure
    finally:
        git.is_silent = False
    monkeypatch.setattr(git_process, "PATH", "/nowhere")
    assert "(Debian: apt-get install git)" in resolved(who, line).failure
