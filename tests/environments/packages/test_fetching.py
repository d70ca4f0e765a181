"""What the hub fetches of locks, keeps and forgets."""

from __future__ import annotations

import pytest

from environments.models import EnvironmentVersion, LockedFile
from environments.packages import package_store, upstream
from tests.environments.locks import resolved
from tests.environments.package_index import PackageIndex
from workspaces.access import Principal
from workspaces.stored_files import blob_names, blobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
TINYLIB = "tinylib-1.0-py3-none-any.whl"


class TestFetch:
    def file(self, url: str, sha256: str = "a" * 64, size_bytes: int = 0) -> LockedFile:
        version = EnvironmentVersion(source="tinylib")
        return LockedFile(version=version, filename=TINYLIB, url=url, sha256=sha256, size_bytes=size_bytes)

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("http://169.254.169.254/x.whl", "is at an address that the hub does not connect to"),
            ("file:///etc/passwd", "outside of the folders that pip is given"),
            ("ftp://127.0.0.1/x.whl", "is not an http:// or https:// address"),
            ("http://127.0.0.1:9/x.whl", "127.0.0.1 does not answer"),
        ],
    )
    def test_refuses_addresses_by_the_policy_of_indexes(
        self, index: PackageIndex, url: str, words: str
    ) -> None:
        with pytest.raises(upstream.FetchFailed, match=words):
            upstream.download_package(self.file(url))

    def test_is_limited_to_the_size_of_the_index(self, index: PackageIndex) -> None:
        # No other test has a file with this content, which the hub would have already.
        sha256 = index.add("tinylib", size=4321)
        url = index.url.replace("/simple", f"/files/{TINYLIB}")
        with pytest.raises(upstream.FetchFailed, match="more than the 3 bytes"):
            upstream.download_package(self.file(url, sha256, 3))
        assert not blobs.exists(sha256)

    def test_reads_folders_that_the_operator_has_given_to_pip(
        self, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sha256 = index.add("tinylib")
        monkeypatch.setenv("PIP_FIND_LINKS", str(index.folder))
        upstream._settings_at.cache_clear()
        url = (index.folder / TINYLIB).as_uri()
        assert upstream.download_package(self.file(url, sha256)) > 0
        assert blobs.exists(sha256)


def test_a_lock_opens_no_stored_file_of_others_by_its_hash(who: Principal, index: PackageIndex) -> None:
    """The bytes of a file that the hub has for another reason are served only after an index has given
    them."""
    index.add("tinylib")
    version = resolved(who)
    (row,) = version.files.all()
    upstream.download_package(row)
    (index.folder / TINYLIB).unlink()
    assert not package_store.is_stored(row)
    with pytest.raises(upstream.FetchFailed, match="404"):
        package_store.start_fetch(row).result(20)


def test_files_that_no_lock_names_are_forgotten(who: Principal, index: PackageIndex) -> None:
    sha256 = index.add("tinylib")
    version = resolved(who)
    package_store.start_fetch(version.files.get()).result(20)
    assert blob_names.named([sha256]) == {sha256}
    assert blob_names.named_in(who.workspace.pk, [sha256]) == set()
    assert blob_names.bytes_in(who.workspace.pk) == (0, {})
    assert package_store.forget_unused() == 0
    version.delete()
    assert package_store.forget_unused() == 1
    assert blob_names.named([sha256]) == set()
