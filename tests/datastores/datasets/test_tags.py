"""Descriptions and tags of datasets: set, changed, removed, and by which datasets are listed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from datastores.models import Dataset
from tests.datastores.datasets.builders import dataset
from tests.people import api_client, client_of, make_contributor, make_viewer
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db
API = "/api/v1/datasets/birds/"


@pytest.fixture
def carl() -> User:
    return make_contributor()


@pytest.fixture
def birds(carl: User) -> Dataset:
    return dataset(carl.memberships.get().workspace)


@pytest.fixture
def api(carl: User) -> Client:
    return api_client(carl)


def patch(api: Client, **fields: Any) -> Any:
    return api.patch(API, fields, "application/json")


class TestApi:
    def test_sets_changes_and_removes_some(self, api: Client, birds: Dataset) -> None:
        tags = {"species": "owl", "items": "a name that templates know, too", "raw": ""}
        assert patch(api, description="All of 2024.", tags=tags).json()["tags"] == tags
        changed = patch(api, tags={"species": "wren", "raw": None, "absent": None}).json()
        assert (changed["description"], changed["tags"]) == (
            "All of 2024.",
            {"species": "wren", "items": tags["items"]},
        )
        assert AuditEvent.objects.filter(verb="dataset.describe").count() == 2
        assert patch(api).status_code == 200
        assert AuditEvent.objects.filter(verb="dataset.describe").count() == 2, "nothing was changed"

    def test_makes_one_with_tags(self, api: Client, birds: Dataset) -> None:
        body = {"name": "fish", "datastore": "bucket", "tags": {"species": "cod"}}
        assert api.post("/api/v1/datasets/", body, "application/json").status_code == 201
        assert Dataset.objects.get(name="fish").tags == {"species": "cod"}

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("", ["birds", "fish"]),
            ("?tag=species", ["birds", "fish"]),
            ("?tag=species%3Dowl", ["birds"]),
            ("?tag=place%3Da%3Db", ["fish"]),
            ("?tag=species%3D", []),
            ("?tag=", []),
            ("?tag=%00", []),
        ],
    )
    def test_lists_those_with_a_tag(self, api: Client, birds: Dataset, query: str, names: list[str]) -> None:
        dataset(birds.workspace, "fish")
        Dataset.objects.filter(name="birds").update(tags={"species": "owl"})
        Dataset.objects.filter(name="fish").update(tags={"species": "cod", "place": "a=b"})
        assert [item["name"] for item in api.get(f"/api/v1/datasets/{query}").json()] == names

    @pytest.mark.parametrize(
        ("tags", "words"),
        [
            ({"": "x"}, "the name of a tag must be text without '='"),
            ({"a=b": "x"}, "the name of a tag must be text without '='"),
            ({"a\nb": "x"}, "the name of a tag must have at most 250 characters, and no line breaks"),
            ({"a" * 251: "x"}, "the name of a tag must have at most 250 characters"),
            ({"a": "x" * 501}, "the value of a must have at most 500 characters"),
            ({"a": "x\x1by"}, "no line breaks"),
            ({str(number): "x" for number in range(51)}, "at most 50 tags; remove one first"),
        ],
    )
    def test_refuses_what_no_tag_can_be(
        self, api: Client, birds: Dataset, tags: dict[str, str], words: str
    ) -> None:
        answer = patch(api, description="Not this either.", tags=tags)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "tags")
        assert words in answer.json()["detail"]
        birds.refresh_from_db()
        assert (birds.description, birds.tags) == ("", {})

    def test_is_for_contributors(self, birds: Dataset) -> None:
        assert patch(api_client(make_viewer()), tags={"a": "b"}).status_code == 403


class TestPages:
    def test_set_show_and_remove(self, carl: User, birds: Dataset) -> None:
        client = client_of(carl)
        for fields in ({"tag": "items = a=b"}, {"tag": "species=owl"}, {"description": "All of <2024>."}):
            assert client.post("/data/sets/birds/change/", fields)["Location"] == "/data/sets/birds/"
        page = client.get("/data/sets/birds/").content.decode()
        for text in ("items=a=b", "species=owl", "All of &lt;2024&gt;.", "?tag=species%3Dowl"):
            assert text in page
        client.post("/data/sets/birds/change/", {"remove_tag": "items"})
        assert Dataset.objects.get().tags == {"species": "owl"}
        refused = client.post("/data/sets/birds/change/", {"tag": "owl"}, follow=True).content.decode()
        assert "Nothing was changed: write it as name=value" in refused

    def test_list_those_with_a_tag(self, carl: User, birds: Dataset) -> None:
        Dataset.objects.update(tags={f"tag-{number}": "x" for number in range(5)})
        client = client_of(carl)
        page = client.get("/data/?tag=tag-1%3Dx").content.decode()
        assert 'href="/data/sets/birds/"' in page
        assert ("tag-2=x" in page, "tag-3=x" in page, "+2" in page) == (True, False, True)
        assert "No dataset has this tag." in client.get("/data/?tag=other").content.decode()

    def test_offer_viewers_no_change(self, birds: Dataset) -> None:
        client = client_of(make_viewer())
        assert "Set tag" not in client.get("/data/sets/birds/").content.decode()
        assert client.post("/data/sets/birds/change/", {"tag": "a=b"}).status_code == 403
