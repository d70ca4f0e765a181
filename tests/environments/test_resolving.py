"""Resolving with a real uv against a real index."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from environments import changes, resolver, tasks
from environments.indexes.index_settings import read_pip_settings
from environments.lock_file import read_lock
from environments.models import EnvironmentVersion
from environments.resolving import uv_process
from environments.resolving.explanations import NO_MESSAGE
from environments.states import VersionState
from tests.environments.package_index import PackageIndex
from workspaces.access import Principal


def resolved(who: Principal, requirements: str, python: str = "3.11") -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "pip", requirements, python)
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    assert version.state != VersionState.RESOLVING
    return version


def failure(who: Principal, requirements: str, python: str = "3.11") -> str:
    version = resolved(who, requirements, python)
    assert (version.state, version.lock) == (VersionState.FAILED, "")
    return version.failure


class TestLock:
    def test_has_every_package_with_its_hash_and_index(self, who: Principal, index: PackageIndex) -> None:
        index.add("base", "1.0")
        newest = index.add("base", "2.0")
        index.add("tinylib", "1.0", "base>=2")
        version = resolved(who, "tinylib\n")
        assert version.state == VersionState.LOCKED, version.failure
        base, tinylib = read_lock(version.lock)
        assert (base.name, base.version, base.hashes) == ("base", "2.0", (f"sha256:{newest}",))
        assert (tinylib.name, tinylib.version) == ("tinylib", "1.0")
        assert index.url in tinylib.index

    def test_runs_no_code_and_leaves_nothing(
        self, who: Principal, index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
        (tmp_path / "tmp").mkdir()
        monkeypatch.setattr("tempfile.tempdir", None)
        index.add("tinylib")
        assert resolved(who, "tinylib").state == VersionState.LOCKED
        assert list((tmp_path / "tmp").iterdir()) == []

    def test_takes_indexes_of_the_requirements(
        self, who: Principal, index: PackageIndex, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        with PackageIndex(tmp_path / "other").serving() as other:
            other.add("ours", "3.0")
            index.add("tinylib")
            version = resolved(who, f"--extra-index-url {other.url}\nours\ntinylib\n")
            assert version.state == VersionState.LOCKED, version.failure
            assert version.lock.startswith(f"--extra-index-url {other.url}\n")
            assert [package.name for package in read_lock(version.lock)] == ["ours", "tinylib"]

    def test_keeps_only_the_hashes_that_were_given(self, who: Principal, index: PackageIndex) -> None:
        sha256 = index.add("tinylib")
        version = resolved(who, f"tinylib==1.0 --hash=sha256:{sha256} --hash=sha256:{'0' * 64}")
        assert read_lock(version.lock)[0].hashes == (f"sha256:{sha256}",)

    def test_takes_wheels_for_a_newer_glibc_if_there_are_no_others(
        self, who: Principal, index: PackageIndex
    ) -> None:
        index.add("newlib")
        wheel = index.folder / "newlib-1.0-py3-none-any.whl"
        wheel.rename(index.folder / "newlib-1.0-cp311-cp311-manylinux_2_34_x86_64.whl")
        version = resolved(who, "newlib")
        assert version.is_locked, version.failure

    def test_is_that_of_the_chosen_python(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib", "1.0")
        index.add("tinylib", "2.0", python=">=3.12")
        assert read_lock(resolved(who, "tinylib", "3.11").lock)[0].version == "1.0"
        assert read_lock(resolved(who, "tinylib", "3.12").lock)[0].version == "2.0"


class TestFailure:
    def test_unknown_package(self, who: Principal, index: PackageIndex) -> None:
        assert failure(who, "no-such-thing").startswith(
            "No index has a package no-such-thing. Check its spelling"
        )

    def test_unknown_version(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib")
        assert failure(who, "tinylib==2.0").startswith("No index has a version tinylib==2.0.")

    def test_unknown_versions_of_a_range(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib", "1.0")
        index.add("tinylib", "3.0")
        text = failure(who, "tinylib==2.*")
        assert text == "No index has tinylib==2.*, only tinylib<2.dev0, tinylib>3.dev0. Change the version."

    def test_a_version_that_only_the_second_index_has(
        self, who: Principal, index: PackageIndex, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        with PackageIndex(tmp_path / "other").serving() as other:
            for version in ("1.0", "3.0"):
                other.add("tinylib", version)
            index.add("tinylib", "2.0")
            text = failure(who, f"--extra-index-url {other.url}\ntinylib==2.*\n")
        assert text.startswith("The first index that has the package, which alone is asked for it, lacks ")

    def test_conflict_names_the_packages(self, who: Principal, index: PackageIndex) -> None:
        index.add("base", "1.0")
        index.add("base", "2.0")
        index.add("tinylib", "1.0", "base>=2")
        text = failure(who, "tinylib==1.0\nbase<2\n")
        assert text.startswith("These versions do not fit together: ")
        assert "tinylib needs base>=2" in text
        assert "base<2" in text
        assert "conclude" not in text

    def test_a_package_without_a_wheel(self, who: Principal, index: PackageIndex) -> None:
        index.add_source("sourcelib")
        text = failure(who, "sourcelib")
        assert text.startswith("sourcelib")
        assert "has no wheel for Python 3.11 on Linux (x86-64). Choose a version that has one" in text
        assert text.endswith("let a node build it from source with the line --no-binary sourcelib.")
        assert not any(path.endswith(".tar.gz") for path in index.requests)

    def test_a_wheel_for_another_platform(self, who: Principal, index: PackageIndex) -> None:
        index.add("maclib")
        wheel = index.folder / "maclib-1.0-py3-none-any.whl"
        wheel.rename(index.folder / "maclib-1.0-cp311-cp311-macosx_11_0_arm64.whl")
        assert "maclib==1.0 has no wheel for Python 3.11 on Linux (x86-64)" in failure(who, "maclib")

    def test_another_python(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib", "2.0", python=">=3.12")
        assert failure(who, "tinylib==2.0") == (
            "tinylib==2.0 needs Python >=3.12, and this is for Python 3.11. Change one of the two."
        )

    def test_a_hash_that_no_file_has(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib")
        text = failure(who, f"tinylib==1.0 --hash=sha256:{'0' * 64}")
        assert text.startswith("None of the hashes that the requirements give for tinylib 1.0 ")

    def test_an_index_that_cannot_be_reached(self, who: Principal, index: PackageIndex) -> None:
        text = failure(who, "--index-url http://127.0.0.1:9/simple\ntinylib")
        assert text.startswith("The index could not be read at http://127.0.0.1:9/simple/tinylib/")

    def test_an_index_that_hangs_is_bounded(
        self, who: Principal, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index.is_silent = True
        monkeypatch.setattr(uv_process, "MAX_S", 3)
        started = time.monotonic()
        assert failure(who, "tinylib").startswith("Resolving took more than ")
        assert time.monotonic() - started < 30

    def test_too_little_memory_is_no_crash_of_the_hub(
        self, who: Principal, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index.add("tinylib")
        monkeypatch.setattr(uv_process, "MAX_MEMORY_BYTES", 32 * 2**20)
        assert failure(who, "tinylib") == NO_MESSAGE

    def test_an_index_at_an_address_of_the_cloud_is_never_asked(self, who: Principal) -> None:
        text = failure(who, "--index-url http://169.254.169.254/simple\ntinylib")
        assert "is at an address that the hub does not connect to" in text

    def test_an_index_that_the_operator_has_not_listed(self, who: Principal, settings: Any) -> None:
        settings.PACKAGE_INDEX_HOSTS = ["pypi.org"]
        text = failure(who, "--index-url http://127.0.0.1:9/simple\ntinylib")
        assert "choose one of pypi.org" in text

    def test_programs_of_the_hubs_machine_are_not_asked_while_others_reach_the_hub(
        self, who: Principal, settings: Any
    ) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        text = failure(who, "--index-url http://localhost:9/simple\ntinylib")
        assert "an operator can add a host of this machine with PACKAGE_INDEX_HOSTS" in text


class TestInterruption:
    def test_what_was_missed_is_resolved_later(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib")
        version = changes.create_version(who, "mine", "pip", "tinylib", "3.11")
        tasks.resolve_missed()
        version.refresh_from_db()
        assert version.is_locked

    def test_one_in_progress_is_left_alone(self, who: Principal) -> None:
        version = changes.create_version(who, "mine", "pip", "tinylib", "3.11")
        EnvironmentVersion.objects.filter(pk=version.pk).update(started_at=timezone.now(), attempts=1)
        tasks.resolve_environment(version.pk)
        tasks.resolve_missed()
        version.refresh_from_db()
        assert (version.state, version.attempts) == (VersionState.RESOLVING, 1)

    def test_after_the_worker_has_died_it_is_begun_again_a_few_times(
        self, who: Principal, index: PackageIndex
    ) -> None:
        index.add("tinylib")
        version = changes.create_version(who, "mine", "pip", "tinylib", "3.11")
        rows = EnvironmentVersion.objects.filter(pk=version.pk)
        long_ago = timezone.now() - resolver.ABANDONED_AFTER - timedelta(seconds=1)
        rows.update(started_at=long_ago, attempts=1)
        tasks.resolve_missed()
        version.refresh_from_db()
        assert (version.is_locked, version.attempts) == (True, 2)

        rows.update(state=VersionState.RESOLVING, started_at=long_ago, attempts=resolver.MAX_ATTEMPTS)
        tasks.resolve_missed()
        version.refresh_from_db()
        assert version.failure.startswith("The hub was interrupted each time")

    def test_a_second_message_changes_nothing(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib")
        version = resolved(who, "tinylib")
        index.add("tinylib", "2.0")
        tasks.resolve_environment(version.pk)
        lock = version.lock
        version.refresh_from_db()
        assert version.lock == lock


def test_settings_of_pip_are_read_with_its_precedence() -> None:
    text = """:env:.index-url='http://env/simple'
:env:.find-links=''
global.find-links='/wheels'
global.index-url='http://file/simple'
global.extra-index-url='file:///a/simple\\nfile:///b/simple'
download.cert='/a.pem'
list.format='columns'
"""
    assert read_pip_settings(text) == {
        "index-url": "http://env/simple",
        "extra-index-url": "file:///a/simple file:///b/simple",
        "cert": "/a.pem",
        "find-links": "/wheels",
    }
