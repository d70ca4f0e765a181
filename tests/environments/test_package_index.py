"""The hub as the package index of its nodes: what it keeps of a lock, and who gets it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from environments import changes, tasks
from environments.models import EnvironmentVersion, LockedFile, PackageFile
from environments.packages import package_store, upstream
from environments.packages.file_list import read_wheels
from jobs.models import Attempt
from jobs.order_downloads.package_tickets import package_ticket
from jobs.tokens import attempt_token
from tests.environments.locks import locked
from tests.environments.package_index import PackageIndex
from tests.jobs.builders import Played, launched, node
from tests.jobs.raw import opened
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal
from workspaces.stored_files import blob_gc, blobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
TINYLIB = "tinylib-1.0-py3-none-any.whl"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as opened_client:
        yield opened_client


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "PAUSE_S", 0.01)
    # pip has other settings in each test.
    upstream._settings_at.cache_clear()
    monkeypatch.setattr(package_store, "FAILURE_LIFETIME_S", 0.2)


def resolved(who: Principal, requirements: str = "tinylib") -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "pip", requirements, "3.11")
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    assert version.is_locked, version.failure
    return version


@sync_to_async
def ordered(who: Principal, requirements: str = "tinylib") -> NodeOrder:
    """The order of a run in a version that was resolved for it."""
    resolved(who, requirements)
    return Played(node("alpha")).claim(launched(who, environment={"name": "mine"}))


def basic(order: NodeOrder) -> dict[str, str]:
    text = base64.b64encode(f"any:{order.package_ticket}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def path_of(order: NodeOrder) -> str:
    return "/" + order.package_index.partition("://")[2].partition("/")[2]


async def ready(client: httpx.AsyncClient, order: NodeOrder) -> dict[str, Any]:
    """The answer of the index once nothing is being fetched any more."""
    while True:
        answer = await client.post(f"{path_of(order)}/", headers=basic(order))
        body: dict[str, Any] = answer.raise_for_status().json()
        if body["ready"] + len(body["failures"]) == body["files"]:
            return body


class TestFiles:
    def test_of_a_lock_are_known_with_address_hash_and_size(
        self, who: Principal, index: PackageIndex
    ) -> None:
        sha256 = index.add("tinylib", "1.0", "base")
        index.add("base", "1.0")
        index.add_source("base", "1.0")
        version = resolved(who)
        row = version.files.get(project="tinylib")
        assert (row.filename, row.sha256, row.is_preferred) == (TINYLIB, sha256, True)
        assert row.url.endswith(f"/files/{TINYLIB}")
        assert [file.project for file in version.files.order_by("project")] == ["base", "tinylib"]

    def test_for_a_newer_glibc_are_known_too_and_the_usual_one_is_preferred(
        self, who: Principal, index: PackageIndex
    ) -> None:
        index.add("newlib")
        wheel = index.folder / "newlib-1.0-py3-none-any.whl"
        for tag in ("cp311-cp311-manylinux_2_34_x86_64", "cp311-cp311-manylinux_2_28_x86_64"):
            (index.folder / f"newlib-1.0-{tag}.whl").write_bytes(wheel.read_bytes() + tag.encode())
        for tag in ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-macosx_11_0_arm64"):
            (index.folder / f"newlib-1.0-{tag}.whl").write_bytes(wheel.read_bytes() + tag.encode())
        wheel.unlink()
        files = resolved(who, "newlib").files
        assert files.get(is_preferred=True).filename == "newlib-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
        assert not files.filter(filename__contains="macosx").exists()
        assert not files.filter(filename__contains="cp312").exists()

    def test_have_no_password_in_their_address(self) -> None:
        text = f"""[[packages]]
name = "Tiny_Lib"
[[packages.wheels]]
url = "https://ann:secret@index.example/a%2Bb-1.0-py3-none-any.whl"
size = 7
hashes = {{ sha256 = "{"a" * 64}" }}
"""
        (wheel,) = read_wheels(text)
        assert wheel.url == "https://index.example/a%2Bb-1.0-py3-none-any.whl"
        assert (wheel.project, wheel.filename, wheel.size_bytes) == (
            "tiny-lib",
            "a+b-1.0-py3-none-any.whl",
            7,
        )


class TestOrder:
    def test_without_known_files_names_no_index(self, who: Principal) -> None:
        # As of a version that an earlier hub has locked.
        locked(who)
        order = Played(node("alpha")).claim(launched(who, environment={"name": "mine"}))
        assert (order.package_index, order.package_ticket) == ("", "")
        assert "package_index" not in order.to_json()

    async def test_names_the_index_and_its_ticket(self, who: Principal, index: PackageIndex) -> None:
        index.add("tinylib")
        order = await ordered(who)
        assert order.package_index.endswith(f"/api/v1/node/packages/{order.run}/1")
        assert order.package_ticket in order.masked
        assert NodeOrder.from_json(order.to_json()) == order


class TestIndex:
    async def test_serves_what_the_lock_names_also_when_the_index_is_gone(
        self, client: httpx.AsyncClient, who: Principal, index: PackageIndex
    ) -> None:
        sha256 = index.add("tinylib")
        index.add("other")
        order = await ordered(who)
        data = (index.folder / TINYLIB).read_bytes()
        requests_before = len(index.requests)
        both = await ready(client, order), await ready(client, order)
        assert both[0] == both[1] == {"files": 1, "ready": 1, "bytes": len(data), "failures": []}
        assert [path for path in index.requests[requests_before:] if path.startswith("/files")] == [
            f"/files/{TINYLIB}"
        ]
        (index.folder / TINYLIB).unlink()

        address = f"{path_of(order)}/simple/tinylib/"
        listing = await client.get(address, headers=basic(order) | JSON)
        assert listing.headers["content-type"] == "application/vnd.pypi.simple.v1+json"
        (entry,) = listing.json()["files"]
        assert (entry["filename"], entry["hashes"]) == (TINYLIB, {"sha256": sha256})
        page = await client.get(address, headers={"Authorization": f"Bearer {order.package_ticket}"})
        assert f'{TINYLIB}#sha256={sha256}"' in page.text

        file = str(httpx.URL(f"http://test{address}").join(entry["url"]).path)
        whole = await client.get(file, headers=basic(order))
        assert hashlib.sha256(whole.content).hexdigest() == sha256
        assert whole.headers["content-length"] == str(len(data))
        part = await client.get(file, headers=basic(order) | {"Range": "bytes=2-5"})
        assert (part.status_code, part.content) == (206, data[2:6])
        metadata = await client.get(f"{file}.metadata", headers=basic(order))
        assert b"Name: tinylib" in metadata.content

        for path in ("simple/other/", f"files/{'0' * 64}/{TINYLIB}", f"files/{sha256}/other.whl"):
            assert (await client.get(f"{path_of(order)}/{path}", headers=basic(order))).status_code == 404

    async def test_is_opened_by_its_ticket_alone_and_only_until_the_attempt_is_over(
        self, client: httpx.AsyncClient, who: Principal, index: PackageIndex
    ) -> None:
        index.add("tinylib")
        order = await ordered(who)
        address = f"{path_of(order)}/simple/tinylib/"
        wrong = (
            package_ticket(order.run, 2),
            package_ticket("another", 1),
            attempt_token(order.run, 1),
            "",
            "ü",
        )
        for text in wrong:
            encoded = base64.b64encode(f"trainhub:{text}".encode()).decode()
            for value in (f"Basic {encoded}", "Basic %%%", "Basic /w=="):
                answer = await client.get(address, headers={"Authorization": value})
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith("Basic")
        bearing = {"Authorization": f"Bearer {order.package_ticket}"}
        for other in (
            "node/config/",
            f"runs/{order.run}/logs/70_driver_log.txt",
            f"snapshots/{order.snapshot}",
        ):
            assert (await client.get(f"/api/v1/{other}", headers=bearing)).status_code == 401
        await Attempt.objects.filter(run_id=order.run).aupdate(ended_at=timezone.now())
        assert (await client.get(address, headers=basic(order))).status_code == 403

    async def test_says_which_file_it_could_not_get_and_why(
        self, client: httpx.AsyncClient, who: Principal, index: PackageIndex
    ) -> None:
        sha256 = index.add("tinylib")
        order = await ordered(who)
        (index.folder / TINYLIB).unlink()
        (failure,) = (await ready(client, order))["failures"]
        assert failure == {"file": TINYLIB, "reason": "127.0.0.1 answers 404 Not Found"}
        answer = await client.get(f"{path_of(order)}/files/{sha256}/{TINYLIB}", headers=basic(order))
        assert answer.status_code == 502
        assert answer.json()["detail"] == f"The hub could not get {TINYLIB}: {failure['reason']}."

        (index.folder / TINYLIB).write_bytes(b"another file")
        answer = await client.get(f"{path_of(order)}/files/{sha256}/{TINYLIB}", headers=basic(order))
        assert "its hash is not the locked one" in answer.json()["detail"]
        assert not await PackageFile.objects.aexists()


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
            upstream.download_wheel(self.file(url))

    def test_is_limited_to_the_size_of_the_index(self, index: PackageIndex) -> None:
        sha256 = index.add("tinylib")
        url = index.url.replace("/simple", f"/files/{TINYLIB}")
        with pytest.raises(upstream.FetchFailed, match="more than the 3 bytes"):
            upstream.download_wheel(self.file(url, sha256, 3))
        assert not blobs.exists(sha256)

    def test_reads_folders_that_the_operator_has_given_to_pip(
        self, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sha256 = index.add("tinylib")
        monkeypatch.setenv("PIP_FIND_LINKS", str(index.folder))
        upstream._settings_at.cache_clear()
        url = (index.folder / TINYLIB).as_uri()
        assert upstream.download_wheel(self.file(url, sha256)) > 0
        assert blobs.exists(sha256)


def test_a_lock_opens_no_stored_file_of_others_by_its_hash(who: Principal, index: PackageIndex) -> None:
    """The bytes of a file that the hub has for another reason are served only after an index has given
    them."""
    index.add("tinylib")
    version = resolved(who)
    (row,) = version.files.all()
    upstream.download_wheel(row)
    (index.folder / TINYLIB).unlink()
    assert not package_store.is_stored(row)
    with pytest.raises(upstream.FetchFailed, match="404"):
        package_store.start_fetch(row).result(20)


def test_files_that_no_lock_names_are_forgotten(who: Principal, index: PackageIndex) -> None:
    sha256 = index.add("tinylib")
    version = resolved(who)
    package_store.start_fetch(version.files.get()).result(20)
    assert blob_gc.named([sha256]) == {sha256}
    assert blob_gc.named_in(who.workspace.pk, [sha256]) == set()
    assert not blob_gc.sizes_in(who.workspace.pk)
    assert package_store.forget_unused() == 0
    version.delete()
    assert package_store.forget_unused() == 1
    assert blob_gc.named([sha256]) == set()
