"""Members read the files of datasets that the hub keeps, and of no others."""

from __future__ import annotations

import httpx
import pytest
from asgiref.sync import async_to_sync

from datastores.models import Dataset, DatasetVersion, Datastore
from tests.jobs.raw import Headers, bearing, opened
from tests.people import (
    api_client,
    make_contributor,
    make_person,
    make_viewer,
    make_workspace,
    token_of,
)
from workspaces.states import Role

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
VERSION = "/api/v1/datasets/birds/versions/1/"
FILES = {"2024/owl.txt": b"hoot", "a b.txt": b"blank"}


async def _request(method: str, address: str, headers: Headers, data: bytes) -> httpx.Response:
    async with opened() as client:
        return await client.request(method, address, content=data, headers=headers)


def request(method: str, address: str, headers: Headers, data: bytes = b"") -> httpx.Response:
    return async_to_sync(_request)(method, address, headers, data)


@pytest.fixture
def headers() -> Headers:
    """Those of somebody who has uploaded the dataset."""
    user = make_contributor()
    api, headers = api_client(user), bearing(token_of(user))
    api.post("/api/v1/datastores/", {"name": "here", "kind": "hub"}, "application/json")
    api.post("/api/v1/datasets/", {"name": "birds", "datastore": "here"}, "application/json")
    for path, data in FILES.items():
        assert request("PUT", f"{VERSION}upload/files/{path}", headers, data).status_code == 204
    assert request("GET", f"{VERSION}files/a b.txt", headers).status_code == 404, "it has no list yet"
    assert api.post(f"{VERSION}upload/finish/", {"files": 2}, "application/json").status_code == 200
    return headers


def test_a_member_gets_a_file_whole_or_a_part_of_it(headers: Headers) -> None:
    viewer = bearing(token_of(make_viewer()))
    for path, data in FILES.items():
        answer = request("GET", f"{VERSION}files/{path}", viewer)
        assert (answer.status_code, answer.content) == (200, data)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    part = request("GET", f"{VERSION}files/2024/owl.txt", {**viewer, "Range": "bytes=2-"})
    assert (part.status_code, part.content) == (206, b"ot")


def test_nobody_gets_what_is_not_there_or_belongs_to_another_workspace(headers: Headers) -> None:
    workspace = make_workspace("other")
    stranger = bearing(token_of(make_person("stranger", Role.OWNER, workspace), workspace))
    assert request("GET", f"{VERSION}files/a b.txt", stranger).status_code == 404
    assert request("GET", f"{VERSION}files/2024", headers).status_code == 404
    assert request("GET", "/api/v1/datasets/birds/versions/2/files/a b.txt", headers).status_code == 404
    assert request("GET", f"{VERSION}files/a b.txt", {}).status_code == 401


def test_lists_of_other_stores_open_nothing_on_the_hub(headers: Headers) -> None:
    dataset = Dataset.objects.get(name="birds")
    dataset.datastore = Datastore.objects.create(
        workspace=dataset.workspace, name="bucket", kind="s3", settings={"bucket": "b"}
    )
    dataset.save()
    answer = request("GET", f"{VERSION}files/a b.txt", headers)
    assert DatasetVersion.objects.get().is_ready
    assert answer.status_code == 409
    assert "lie in the datastore bucket, and the hub does not keep them" in answer.json()["detail"]
