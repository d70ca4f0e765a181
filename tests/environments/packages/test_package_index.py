"""The hub as the package index of its nodes: what it keeps of a lock, and who gets it."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from clusters.models import Node
from environments import changes, tasks
from environments.models import PackageFile
from environments.packages.file_list import read_wheels
from jobs.models import Attempt
from jobs.order_downloads.package_tickets import package_ticket
from jobs.tokens import attempt_token
from tests.environments.conda_channel import CondaChannel
from tests.environments.locks import locked, resolved
from tests.environments.package_index import PackageIndex
from tests.jobs.builders import Played, launched, node
from tests.jobs.raw import opened
from trainhub_launch.machine import CONDA, HUB_CONDA, SECRETS
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
TINYLIB = "tinylib-1.0-py3-none-any.whl"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as opened_client:
        yield opened_client


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
        # The same for all orders: installers keep what they have downloaded under the address of the index.
        assert order.package_index.endswith("/api/v1/node/packages")
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
            order.package_ticket.replace("_1_", "_2_"),
            order.package_ticket.replace(order.run, "0" * 32),
            order.package_ticket[:-1],
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
        for other in (package_ticket(order.run, 2), package_ticket("0" * 32, 1)):
            answer = await client.get(address, headers={"Authorization": f"Bearer {other}"})
            assert answer.status_code == 403
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
        assert "its hash is not the one of the lock" in answer.json()["detail"]
        assert not await PackageFile.objects.aexists()


class TestConda:
    @sync_to_async
    def ordered(self, who: Principal, folder: Path, capabilities: str) -> NodeOrder:
        """The order of a run in an environment of a channel that is a folder."""
        channel = CondaChannel(folder)
        channel.add("python", "3.11.2")
        channel.index()
        source = f"channels: ['{folder.as_uri()}']\ndependencies: [python, {{pip: [tinylib]}}]\n"
        version = changes.create_version(who, "mine", "conda", source)
        tasks.resolve_environment(version.pk)
        machine = node("alpha")
        Node.objects.filter(pk=machine.pk).update(capabilities=f"{SECRETS} {CONDA} {capabilities}")
        return Played(Node.objects.get(pk=machine.pk)).claim(launched(who, environment={"name": "mine"}))

    async def test_of_a_channel_that_only_the_hub_can_read(
        self,
        client: httpx.AsyncClient,
        who: Principal,
        index: PackageIndex,
        tmp_path: Path,
        settings: Any,
    ) -> None:
        index.add("tinylib")
        settings.CONDA_CHANNEL_FOLDERS = [str(tmp_path)]
        order = await self.ordered(who, tmp_path / "channel", HUB_CONDA)
        (package,) = order.environment.conda["packages"]
        data = (tmp_path / "channel/linux-64" / package["file"]).read_bytes()
        assert (await ready(client, order))["files"] == 2
        shutil.rmtree(tmp_path / "channel")
        address = f"{path_of(order)}/files/{package['sha256']}/{package['file']}"
        assert (await client.get(address, headers=basic(order))).content == data
        assert (await client.get(f"{address}.metadata", headers=basic(order))).status_code == 404
        # pip is offered its own packages alone.
        for name, status in (("tinylib", 200), ("python", 404)):
            answer = await client.get(f"{path_of(order)}/simple/{name}/", headers=basic(order))
            assert answer.status_code == status

        # No longer allowed, and so no longer fetched.
        settings.CONDA_CHANNEL_FOLDERS = []
        await PackageFile.objects.filter(sha256=package["sha256"]).adelete()
        assert "outside of the folders for channels" in (await client.get(address, headers=basic(order))).text

    async def test_is_not_offered_to_an_agent_that_would_take_it_for_pips(
        self, who: Principal, index: PackageIndex, tmp_path: Path, settings: Any
    ) -> None:
        index.add("tinylib")
        settings.CONDA_CHANNEL_FOLDERS = [str(tmp_path)]
        order = await self.ordered(who, tmp_path / "channel", "")
        assert (order.package_index, order.environment.kind) == ("", "conda")
