"""Datastores: named, used by runs, and deleted, by the API and the page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from datastores import changes
from datastores.models import Datastore
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.scheduling.run_preview import preview
from jobs.states import RunState
from tests.api.contract import ApiClient
from tests.jobs.builders import Played, launched, node, queued, spec
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_person,
    make_viewer,
    make_workspace,
    principal_of,
    token_of,
)
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.machine import INPUTS, OWN_ACCOUNTS
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API = "/api/v1/datastores/"
IMAGES = {"name": "images", "kind": "folder", "path": "/mnt/images"}
BIRDS = {"birds": {"datastore": "images", "path": "birds/2024"}}


@pytest.fixture
def api() -> Client:
    return api_client(make_contributor())


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


def post(client: Client, **changes: Any) -> Any:
    return client.post(API, {**IMAGES, **changes}, "application/json")


class TestApi:
    def test_one_is_made_read_changed_and_deleted(self, api: Client) -> None:
        made = post(api, path="/mnt//images/", description="all of them").json()
        assert (made["path"], made["created_by"]) == ("/mnt/images", "carl")
        assert api.get(API).json() == [made]
        changed = api.patch(f"{API}images/", {"path": "/data/images"}, "application/json").json()
        assert changed == {**made, "path": "/data/images"}
        assert api.get(f"{API}images/").json() == changed
        assert api.delete(f"{API}images/").status_code == 204
        assert api.get(f"{API}images/").status_code == 404
        events = AuditEvent.objects.filter(verb__startswith="datastore.").order_by("pk")
        assert [(event.verb, event.subject) for event in events] == [
            ("datastore.create", "images"),
            ("datastore.change", "images"),
            ("datastore.delete", "images"),
        ]

    @pytest.mark.parametrize(
        ("changes", "field", "words"),
        [
            ({"name": "a b"}, "name", "letters, digits"),
            ({"name": "images"}, "name", "already"),
            ({"kind": "tape"}, "kind", "tape"),
            ({"path": "images"}, "path", "absolute path"),
            ({"path": "/mnt/a,b"}, "path", "without commas"),
            ({"path": "/mnt/../etc"}, "path", "'..'"),
            ({"path": "/"}, "path", "belongs to the system"),
            ({"path": "//"}, "path", "belongs to the system"),
            ({"path": "/etc/ssl"}, "path", "belongs to the system"),
            ({"path": f"/{'a' * 1024}"}, "path", "1024"),
            ({"description": "a" * 501}, "description", "500"),
        ],
    )
    def test_a_wrong_one_is_refused_at_its_field(
        self, api: Client, changes: dict[str, str], field: str, words: str
    ) -> None:
        post(api)
        answer = post(api, **{"name": "other", **changes})
        assert answer.status_code == 400
        assert {error["field"] for error in answer.json()["errors"]} == {field}
        assert words in answer.json()["detail"]
        assert Datastore.objects.count() == 1

    def test_an_empty_change_is_none(self, api: Client) -> None:
        post(api)
        assert api.patch(f"{API}images/", {}, "application/json").status_code == 200
        assert not AuditEvent.objects.filter(verb="datastore.change").exists()

    def test_a_wrong_change_changes_nothing(self, api: Client) -> None:
        post(api)
        body = {"path": "/proc", "description": "new"}
        assert api.patch(f"{API}images/", body, "application/json").status_code == 400
        assert (Datastore.objects.get().path, Datastore.objects.get().description) == ("/mnt/images", "")

    def test_a_viewer_only_looks(self, api: Client) -> None:
        post(api)
        viewer = api_client(make_viewer())
        assert [row["name"] for row in viewer.get(API).json()] == ["images"]
        assert post(viewer, name="other").status_code == 403
        assert viewer.delete(f"{API}images/").status_code == 403

    def test_another_workspace_sees_none(self, api: Client) -> None:
        post(api)
        elsewhere = make_workspace("other")
        otto = make_person("otto", Role.OWNER, elsewhere)
        other = ApiClient(headers={"authorization": f"Bearer {token_of(otto, elsewhere)}"})
        assert other.get(f"{API}images/").status_code == 404
        assert other.get(API).json() == []
        assert post(other).status_code == 201


class TestRuns:
    def test_get_the_paths_with_their_order(self, who: Principal) -> None:
        make(who)
        alpha = able("alpha")
        run = launched(who, inputs={**BIRDS, "all_images": {"datastore": "images"}})
        order = alpha.claim(run)
        assert order.inputs == {"birds": "/mnt/images/birds/2024", "all_images": "/mnt/images"}
        changes.change(who, Datastore.objects.get(), {"path": "/mnt/elsewhere"})
        assert alpha.claim(run).inputs == order.inputs, "attempts that have begun keep the path"

    def test_wait_for_a_node_that_knows_of_inputs(self, who: Principal) -> None:
        make(who)
        node()
        run = launched(who, inputs=BIRDS)
        assert run.state == RunState.QUEUED
        assert "alpha does not know inputs of runs: upgrade its agent" in run.events.latest("pk").message

    def test_with_an_unknown_datastore_are_refused_and_the_known_are_named(self, who: Principal) -> None:
        able("alpha")
        make(who)
        with pytest.raises(SpecError) as raised:
            queued(who, inputs={"birds": {"datastore": "imgaes"}})
        assert raised.value.field == "inputs.birds.datastore"
        assert "there is no datastore 'imgaes' in Default; there are: images" in raised.value.message

    def test_are_told_who_must_be_able_to_read(self, who: Principal) -> None:
        able("alpha", OWN_ACCOUNTS)
        make(who)
        findings = preview(spec(who, inputs=BIRDS), who).findings
        assert (
            Finding(
                "hint",
                "inputs",
                "runs on alpha have accounts of their own, so everybody there must be able to read "
                "/mnt/images/birds/2024",
            )
            in findings
        )

    def test_keep_their_datastore_until_they_end(self, api: Client, who: Principal) -> None:
        make(who)
        able("alpha")
        run = queued(who, inputs=BIRDS)
        answer = api.delete(f"{API}images/")
        assert answer.status_code == 400
        assert (
            answer.json()["detail"]
            == f"name: images is needed by run {run.number}; delete it when that is over"
        )
        run_actions.cancel(Run.objects.get(), who.user)
        assert api.delete(f"{API}images/").status_code == 204


class TestPage:
    def test_adds_and_deletes(self, who: Principal) -> None:
        page = client_of(who.user)
        assert "None yet" in page.get("/data/").content.decode()
        fields = {"name": "images", "path": "/mnt/images", "description": "all"}
        assert "Runs can read images now" in page.post("/data/new/", fields, follow=True).content.decode()
        again = page.post("/data/new/", fields)
        assert again.status_code == 400
        assert "There is a datastore images already; choose another name." in again.content.decode()
        gone = page.post("/data/datastores/images/delete/", follow=True).content.decode()
        assert "The datastore images is deleted." in gone
        assert not Datastore.objects.exists()

    def test_says_that_files_can_be_uploaded_to_the_hub(self, who: Principal) -> None:
        page = client_of(who.user).post("/data/new/?kind=hub", {"name": "desk"}, follow=True).content.decode()
        assert "People can upload files into datasets of desk now." in page
        assert "Test whether every node can" not in page

    def test_says_why_one_stays(self, who: Principal) -> None:
        make(who)
        able("alpha")
        run = queued(who, inputs=BIRDS)
        answer = client_of(who.user).post("/data/datastores/images/delete/", follow=True).content.decode()
        assert f"Images is needed by run {run.number}" in answer

    def test_a_viewer_has_no_form(self) -> None:
        text = client_of(make_viewer()).get("/data/").content.decode()
        assert "Add a datastore" not in text


def make(who: Principal) -> Datastore:
    return Datastore.objects.create(workspace=who.workspace, name="images", path="/mnt/images")


def able(name: str, *more: str) -> Played:
    """A node that knows of inputs."""
    machine = node(name)
    machine.capabilities = " ".join((INPUTS, *more))
    machine.save(update_fields=["capabilities"])
    return Played(machine)
