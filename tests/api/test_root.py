from __future__ import annotations

import pytest
from django.test import Client

from tests.api import contract
from tests.people import client_of, make_viewer


def test_lists_every_collection_with_its_address(viewer_api: Client) -> None:
    answer = viewer_api.get("/api/v1/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    body = answer.json()
    declared = {
        path.split("/")[3]
        for path in contract.document()["paths"]
        if path.count("/") == 4 and "{" not in path
    }
    assert declared - {"", "verifier"} == set(body["collections"]), "the verifier is one file"
    assert body["collections"]["runs"] == "http://testserver/api/v1/runs/"
    others = {"snapshots": 405, "device-login": 405, "audit": 403, "system": 403, "log-target": 403}
    for address in (*body["collections"].values(), body["schema"]):
        expected = others.get(address.rstrip("/").rpartition("/")[2], 200)
        assert viewer_api.get(address).status_code == expected, address


def test_leads_a_person_to_the_page_that_leads_back(db: None) -> None:
    client = client_of(make_viewer())
    page = client.get(client.get("/api/v1/").json()["docs"])
    assert page.status_code == 200
    assert 'href="/api/v1/"' in page.content.decode()


@pytest.mark.django_db
def test_tells_nobody_anything() -> None:
    assert Client().get("/api/v1/").status_code == 401


def test_is_part_of_the_document() -> None:
    assert contract.document()["paths"]["/api/v1/"]["get"]["operationId"] == "root"
