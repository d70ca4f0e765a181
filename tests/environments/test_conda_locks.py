"""Solving conda environments with a real rattler, uv, channel and index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.models import Node
from environments import changes, tasks
from environments.conda import solver_process
from environments.conda.conda_lock import CondaLock
from environments.kinds.all_kinds import kind_of
from environments.models import EnvironmentVersion
from environments.packages.file_list import has_all_files
from environments.packages.glibc_needs import glibc_capabilities
from environments.states import VersionState
from tests.environments.conda_channel import CondaChannel
from tests.environments.package_index import PackageIndex
from tests.jobs.builders import node
from workspaces.access import Principal


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CondaChannel]:
    made = CondaChannel(tmp_path_factory.mktemp("channel"))
    made.add("python", "3.10.4", "__glibc >=2.17")
    made.add("python", "3.11.2", "__glibc >=2.17")
    made.add_module("base", "1.0")
    made.add_module("base", "2.0")
    made.add_module("app", "1.0", "base >=2")
    made.add("gpulib", "1.0", "__cuda >=12")
    made.add("newlib", "1.0", "__glibc >=2.34,<3.0.a0")
    made.add("choice", "1.0", "__glibc >=2.17,<3.0.a0")
    made.add("choice", "2.0", "__glibc >=2.34,<3.0.a0")
    made.index()
    with made.serving():
        yield made


def solved(who: Principal, text: str) -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "conda", text)
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    assert version.state != VersionState.RESOLVING
    return version


def file(channel: CondaChannel, *dependencies: str) -> str:
    return "\n".join(
        (f"channels: ['{channel.url}']", "dependencies:", *(f"- {item}" for item in dependencies), "")
    )


def failure(who: Principal, text: str) -> str:
    version = solved(who, text)
    assert (version.state, version.lock) == (VersionState.FAILED, "")
    return version.failure


class TestLock:
    def test_has_every_package_with_its_address_and_hash(self, who: Principal, channel: CondaChannel) -> None:
        version = solved(who, file(channel, "app", "python=3.10"))
        assert version.is_locked, version.failure
        lock = CondaLock.from_text(version.lock)
        assert [(item.name, item.version) for item in lock.packages] == [
            ("app", "1.0"),
            ("base", "2.0"),
            ("python", "3.10.4"),
        ]
        assert lock.packages[1].url == f"{channel.url}/noarch/base-2.0-py_0.tar.bz2"
        assert all(len(item.sha256) == 64 for item in lock.packages)
        assert CondaLock.from_text(lock.to_text()) == lock
        files = kind_of(version).version_files(version)
        assert f"{channel.url}/noarch/base-2.0-py_0.tar.bz2#sha256:" in files["explicit.txt"]
        assert "@EXPLICIT" in files["explicit.txt"]

    def test_lets_pip_replace_nothing_of_conda(
        self, who: Principal, channel: CondaChannel, index: PackageIndex
    ) -> None:
        index.add("base", "3.0")
        index.add("ontop", "1.0", "base>=1")
        version = solved(who, file(channel, "base=1.0", "python=3.11", "pip: [ontop]"))
        assert version.is_locked, version.failure
        lock = CondaLock.from_text(version.lock)
        assert lock.pip.count("==") == 1
        # What the hub keeps for nodes: both packages of conda, and the wheel.
        rows = version.files.order_by("filename").values_list("project", "is_conda", "is_preferred")
        assert [*rows] == [("base", True, True), ("ontop", False, True), ("python", True, True)]
        assert has_all_files(version)
        assert "ontop==1.0" in lock.pip
        packages = kind_of(version).locked_packages(version.lock)
        assert [(item.name, item.version, item.installer) for item in packages] == [
            ("base", "1.0", "conda"),
            ("ontop", "1.0", "pip"),
            ("python", "3.11.2", "conda"),
        ]
        spec = kind_of(version).node_spec(version)
        assert (spec.kind, spec.lock) == ("conda", lock.pip)

    def test_takes_packages_for_a_newer_glibc_only_if_it_must(
        self, who: Principal, channel: CondaChannel
    ) -> None:
        version = solved(who, file(channel, "newlib", "python"))
        assert CondaLock.from_text(version.lock).virtual_packages["__glibc"] == "2.39"
        need = "glibc:2.34:newlib 1.0"
        assert glibc_capabilities([version.pk]) == {version.pk: frozenset({need})}

    def test_fits_the_oldest_glibc_of_the_nodes(self, who: Principal, channel: CondaChannel) -> None:
        for name, glibc in (("alpha", "2.36"), ("beta", "2.41"), ("gamma", "")):
            Node.objects.filter(pk=node(name).pk).update(
                capabilities=f"secrets glibc:{glibc}" if glibc else "secrets"
            )
        version = solved(who, file(channel, "newlib", "python"))
        assert CondaLock.from_text(version.lock).virtual_packages["__glibc"] == "2.36"
        Node.objects.filter(name="alpha").update(capabilities="glibc:2.31 secrets")
        older = solved(who, file(channel, "choice", "python"))
        assert "choice==1.0" in kind_of(older).node_spec(older).requirements
        assert not glibc_capabilities([older.pk])

    def test_of_a_build_for_cuda(self, who: Principal, channel: CondaChannel) -> None:
        version = solved(who, file(channel, "gpulib", "python", "__cuda=12.4"))
        assert CondaLock.from_text(version.lock).virtual_packages["__cuda"] == "12.4"


class TestFailure:
    @pytest.mark.parametrize(
        ("dependencies", "words"),
        [
            (["nope", "python"], "No channel has a package nope. Check its spelling"),
            (["base>=3", "python"], "No channel has base >=3, only 1.0, 2.0. Change the version."),
            (["app", "base<2"], "app 1.0 needs base >=2; the file names base<2. Change one of them."),
            (["gpulib", "python"], "such as - __cuda=12.4"),
            (["base==", "python"], "A dependency cannot be read: "),
        ],
    )
    def test_names_the_packages(
        self, who: Principal, channel: CondaChannel, dependencies: list[str], words: str
    ) -> None:
        assert words in failure(who, file(channel, *dependencies))

    def test_pip_against_conda(self, who: Principal, channel: CondaChannel, index: PackageIndex) -> None:
        index.add("picky", "1.0", "base>=2")
        text = failure(who, file(channel, "base=1.0", "python=3.11", "pip: [picky]"))
        assert text.startswith("Below 'pip:': These versions do not fit together: ")
        assert text.endswith("From conda are base 1.0.")

    def test_without_python(self, who: Principal, channel: CondaChannel) -> None:
        assert "contain no Python" in failure(who, file(channel, "gpulib", "__cuda=12.4"))

    def test_a_channel_that_cannot_be_read(self, who: Principal, channel: CondaChannel) -> None:
        text = failure(who, "channels: ['http://127.0.0.1:9/ours']\ndependencies: [python]")
        assert text.startswith("The channel could not be read at http://127.0.0.1:9/ours")
        text = failure(who, f"channels: ['{channel.url}/nothing']\ndependencies: [python]")
        assert text.startswith(f"There is no channel at {channel.url}/nothing")

    def test_a_channel_that_hangs_is_bounded(
        self, who: Principal, channel: CondaChannel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(solver_process, "MAX_S", 3)
        channel.is_silent = True
        try:
            assert f"check that the channels answer ({channel.url})" in failure(who, file(channel, "python"))
        finally:
            channel.is_silent = False

    def test_too_little_memory_is_no_crash_of_the_hub(
        self, who: Principal, channel: CondaChannel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(solver_process, "MAX_MEMORY_BYTES", 64 * 2**20)
        assert "its limit of memory" in failure(who, file(channel, "python"))

    def test_a_channel_at_an_address_of_the_cloud_is_never_asked(self, who: Principal) -> None:
        text = failure(who, "channels: ['http://169.254.169.254/x']\ndependencies: [python]")
        assert "is at an address that the hub does not connect to" in text
