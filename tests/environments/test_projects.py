"""Environments from pyproject.toml, with or without uv.lock, and from pylock.toml."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from uv import find_uv_bin

from environments import changes, tasks
from environments.kinds.all_kinds import kind_named, kind_of
from environments.lock_file import download_bytes, read_lock
from environments.models import EnvironmentVersion
from environments.projects.source_text import is_project, join_project
from environments.states import VersionState
from tests.environments.package_index import PackageIndex
from trainhub_launch.errors import SpecError
from workspaces.access import Principal

PYPROJECT = """\
[project]
name = "digits"
version = "1"
requires-python = ">=3.11"
dependencies = ["tinylib", "winlib; sys_platform == 'win32'"]

[project.optional-dependencies]
plots = ["plotlib"]

[dependency-groups]
dev = ["devlib"]
check = [{include-group = "dev"}]

[tool.trainhub]
extras = ["plots"]
groups = ["check"]
"""
HASH = "0" * 64
PYLOCK = f"""\
lock-version = "1.0"
requires-python = ">=3.11"

[[packages]]
name = "Tiny_Lib"
version = "1.0"
index = "https://packages.example.org/simple"
[[packages.wheels]]
name = "tiny_lib-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
size = 100
hashes = {{ sha256 = "{HASH}" }}
[[packages.wheels]]
name = "tiny_lib-1.0-cp311-cp311-win_amd64.whl"
size = 90
hashes = {{ sha256 = "{"1" * 64}" }}

[[packages]]
name = "winlib"
version = "1.0"
marker = "sys_platform == 'win32'"
wheels = [{{ name = "winlib-1.0-py3-none-any.whl", size = 5, hashes = {{ sha256 = "{HASH}" }} }}]
"""


@pytest.fixture
def packages(index: PackageIndex) -> PackageIndex:
    for name in ("tinylib", "plotlib", "devlib", "winlib"):
        index.add(name)
    return index


def resolved(who: Principal, source: str, python: str = "3.11") -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "pip", source, python)
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    return version


def names(version: EnvironmentVersion) -> list[str]:
    assert version.is_locked, version.failure
    return [package.name for package in read_lock(version.lock)]


def uv_lock(folder: Path, pyproject: str, index: PackageIndex) -> str:
    (folder / "pyproject.toml").write_text(pyproject)
    command = [find_uv_bin(), "lock", "-q", f"--project={folder}", f"--default-index={index.url}"]
    subprocess.run(command, check=True, env={"UV_NO_CONFIG": "1", "HOME": str(folder), "PATH": "/usr/bin"})
    return (folder / "uv.lock").read_text()


def test_dependencies_extras_and_groups_are_resolved(who: Principal, packages: PackageIndex) -> None:
    version = resolved(who, PYPROJECT)
    assert names(version) == ["devlib", "plotlib", "tinylib"]
    assert sorted(kind_of(version).version_files(version)) == ["pyproject.toml", "requirements.lock"]


def test_a_uv_lock_is_taken_as_it_is(who: Principal, packages: PackageIndex, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    lock = uv_lock(tmp_path / "project", PYPROJECT, packages)
    packages.add("tinylib", "2.0")
    packages.requests.clear()
    version = resolved(who, join_project(PYPROJECT, lock))
    assert names(version) == ["devlib", "plotlib", "tinylib"]
    assert packages.requests == []
    tinylib = read_lock(version.lock)[-1]
    assert (tinylib.version, tinylib.hashes) == (
        "1.0",
        (f"sha256:{packages.sha256('tinylib-1.0-py3-none-any.whl')}",),
    )
    assert version.lock.startswith(f"--extra-index-url {packages.url}\n")
    assert [*kind_of(version).version_files(version)] == ["pyproject.toml", "uv.lock", "requirements.lock"]

    newer = PYPROJECT.replace('"tinylib",', '"tinylib", "another",')
    failure = resolved(who, join_project(newer, lock)).failure
    assert failure.startswith("uv.lock is older than pyproject.toml: it lacks another. Run `uv lock`")
    failure = resolved(who, join_project(PYPROJECT.replace(">=3.11", ">=3.12"), lock)).failure
    assert "requires-python = '>=3.12', and this version is for Python 3.11" in failure


def test_a_pylock_is_taken_as_it_is(who: Principal, packages: PackageIndex) -> None:
    version = resolved(who, PYLOCK)
    assert names(version) == ["tiny-lib"]
    (package,) = read_lock(version.lock)
    assert (package.hashes, package.size) == ((f"sha256:{HASH}",), 100)
    assert download_bytes([package]) == 100
    assert package.index == "https://packages.example.org/simple"
    assert packages.requests == []
    failure = resolved(who, PYLOCK, "3.12").failure
    assert failure.startswith("pylock.toml: tiny-lib 1.0 has no wheel for Python 3.12 on Linux (x86-64)")


@pytest.mark.parametrize(
    ("changed", "to", "words"),
    [
        ('version = "1.0"\nindex', 'version = "1.0 --x"\nindex', "Invalid version"),
        ('name = "Tiny_Lib"', 'name = "a b"', "name is invalid"),
        ('version = "1.0"\nindex', 'version = "1.1"\nindex', "is no wheel of tiny-lib 1.1; lock it again"),
        (HASH, "edited", "has no SHA-256 of 64 digits there; lock it again"),
        ("https://packages.example.org/simple", "https://x/\\n--trusted-host x", "plain characters"),
        ("[[packages.wheels]]\n", 'vcs = { url = "https://x" }\n[[packages.wheels]]\n', "from a repository"),
    ],
)
def test_what_a_pylock_cannot_have_is_named(
    who: Principal, packages: PackageIndex, changed: str, to: str, words: str
) -> None:
    version = resolved(who, PYLOCK.replace(changed, to, 1))
    assert version.state == VersionState.FAILED
    assert words in version.failure


@pytest.mark.parametrize(
    ("changed", "to", "words"),
    [
        ("[project]\n", "[project\n", "pyproject.toml is not valid TOML"),
        ('version = "1"', 'dynamic = ["dependencies"]', "list them in [project] dependencies"),
        ('["tinylib",', '["tinylib @ git+ssh://host/x",', "only git+https:// is possible here"),
        ('["plots"]\ngroups', '["none"]\ngroups', "project.optional-dependencies has plots"),
        ('groups = ["check"]', 'groups = ["none"]', "dependency-groups has dev, check"),
        ('{include-group = "dev"}', '{include-group = "check"}', "there is no group 'check'"),
        ("[tool.trainhub]", '[tool.uv.sources]\ntinylib = { path = "../x" }\n[tool.trainhub]', "has path"),
        (
            "[tool.trainhub]",
            "[tool.uv.sources]\ntinylib = { workspace = true }\n[tool.trainhub]",
            "members of",
        ),
        ("[tool.trainhub]", '[tool.uv.sources]\ntinylib = [{ git = "x" }]\n[tool.trainhub]', "has git"),
        ('">=3.11"', '"three"', "is not like >=3.11"),
    ],
)
def test_what_a_project_cannot_have_is_refused(changed: str, to: str, words: str) -> None:
    assert changed in PYPROJECT
    with pytest.raises(SpecError) as error:
        kind_named("pip").check(PYPROJECT.replace(changed, to, 1))
    assert words in error.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('version = 1\n[[package]]\nname = "x"\n', "give pyproject[.]toml too"),
        ('[tool.poetry]\nname = "x"\n', "move the dependencies of .tool[.]poetry. there"),
    ],
)
def test_what_has_no_project_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        kind_named("pip").check(text)


def test_requirements_are_no_project() -> None:
    assert not is_project("numpy[all]==2\n# [project]\ntorch\n")
