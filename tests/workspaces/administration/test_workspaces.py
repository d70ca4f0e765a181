"""Several workspaces: made, renamed, archived and restored by operators, on the page and by the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from jobs.models import Run
from tests.jobs.builders import queued
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_person,
    make_viewer,
    make_workspace,
    principal_of,
)
from workspaces.access import membership_principal
from workspaces.administration import workspace_changes
from workspaces.models import AuditEvent, Invitation, Membership, User, Workspace
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
API = "/api/v1/workspaces/"


@pytest.fixture
def operator() -> User:
    return make_operator()


@pytest.fixture
def page(operator: User) -> Client:
    return client_of(operator)


@pytest.fixture
def api(operator: User) -> Client:
    return api_client(operator)


def said(page: Client, path: str, **form: str) -> str:
    return page.post(path, form, follow=True).content.decode()


def sent(client: Client, method: str, path: str, body: object) -> Any:
    return getattr(client, method)(path, body, content_type="application/json")


class TestPage:
    def test_makes_one_with_its_first_owner(self, page: Client) -> None:
        otto = make_person("otto")
        said(page, "/workspaces/create/", name=" Vision  research ", owner="otto")
        workspace = Workspace.objects.get(slug="vision-research")
        assert workspace.name == "Vision research"
        who = membership_principal(otto)
        assert who is not None
        assert (who.workspace, who.role) == (workspace, Role.OWNER)
        assert AuditEvent.objects.get(verb="workspace.created").workspace == workspace

    def test_its_maker_is_the_owner_if_nobody_is_named(self, page: Client, operator: User) -> None:
        said(page, "/workspaces/create/", name="Vision")
        assert Membership.objects.get(workspace__slug="vision").user == operator
        assert ">Vision</span>" in page.get("/").content.decode(), "in the menu to choose from"

    @pytest.mark.parametrize(
        ("form", "sentence"),
        [
            ({"name": ""}, "This field is required"),
            ({"name": "A", "owner": "nobody"}, "Nobody here is called nobody"),
            ({"name": "A", "slug": "a b"}, "Use letters, digits, hyphens and underscores only."),
            ({"name": "B", "slug": "default"}, "There is a workspace &#x27;default&#x27; already"),
            ({"name": "研究"}, "Use letters, digits, hyphens and underscores only."),
        ],
    )
    def test_refuses_at_the_field_and_makes_nothing(
        self, page: Client, form: dict[str, str], sentence: str
    ) -> None:
        answer = page.post("/workspaces/create/", form)
        assert answer.status_code == 400
        assert sentence in answer.content.decode()
        assert list(Workspace.objects.values_list("slug", flat=True)) == ["default"]

    def test_renames(self, page: Client) -> None:
        workspace = make_workspace()
        said(page, f"/workspaces/{workspace.pk}/rename/", name="Team one")
        workspace.refresh_from_db()
        assert (workspace.name, workspace.slug) == ("Team one", "default")
        assert "The name must have 1 to 100 characters." in said(
            page, f"/workspaces/{workspace.pk}/rename/", name=" "
        )

    def test_an_operator_becomes_owner_of_one_whose_owners_have_left(
        self, page: Client, operator: User
    ) -> None:
        other = make_workspace("other")
        assert "no owner" in page.get("/workspaces/").content.decode()
        said(page, f"/workspaces/{other.pk}/join/")
        assert Membership.objects.get(workspace=other, user=operator).role == Role.OWNER


class TestArchive:
    def test_members_read_and_change_nothing(self, page: Client) -> None:
        make_workspace("other")
        workspace, carl = make_workspace(), make_contributor()
        run = queued(principal_of(carl))
        Run.objects.update(state="Completed")
        assert "is archived: its members can read it" in said(page, f"/workspaces/{workspace.pk}/archive/")
        browser, program = client_of(carl), api_client(carl)
        assert browser.get(f"/runs/{run.number}/").status_code == 200
        answer = browser.post(f"/runs/{run.number}/delete/")
        assert answer.status_code == 403
        assert (
            "Default is archived and can only be read. An operator can restore it." in answer.content.decode()
        )
        assert program.get("/api/v1/runs/").status_code == 200
        assert sent(program, "post", "/api/v1/runs/", run.spec).status_code == 403
        said(page, f"/workspaces/{workspace.pk}/restore/")
        assert sent(program, "post", "/api/v1/runs/", run.spec).status_code == 201

    def test_not_while_runs_go_on(self, page: Client) -> None:
        make_workspace("other")
        queued(principal_of(make_contributor()))
        text = said(page, f"/workspaces/{make_workspace().pk}/archive/")
        assert (
            "Default was not archived: 1 run has not ended in it; wait for the end, or cancel first." in text
        )
        assert make_workspace().archived_at is None

    def test_a_submission_that_overtakes_it_starts_nothing(self, operator: User) -> None:
        make_workspace("other")
        who = principal_of(make_contributor())
        workspace_changes.archive(operator, make_workspace())
        assert who.role == Role.CONTRIBUTOR, "read before the workspace was archived"
        with pytest.raises(PermissionDenied, match="Default is archived and can only be read"):
            queued(who)
        assert not Run.objects.exists()

    def test_not_the_only_one(self, page: Client) -> None:
        text = said(page, f"/workspaces/{make_workspace().pk}/archive/")
        assert "it is the only one that is not archived" in text

    def test_withdraws_invitations_and_is_chosen_last(self, page: Client) -> None:
        workspace, other = make_workspace(), make_workspace("other")
        vera = make_viewer()
        Membership.objects.create(workspace=other, user=vera, role=Role.VIEWER)
        Invitation.objects.create(workspace=workspace, user=make_person("ines"), role=Role.VIEWER)
        said(page, f"/workspaces/{workspace.pk}/archive/")
        assert not Invitation.objects.exists()
        who = membership_principal(vera)
        assert who is not None
        assert who.workspace == other


class TestApi:
    def test_operators_make_change_and_archive(self, api: Client) -> None:
        made = sent(api, "post", API, {"name": "Vision", "slug": "vis"})
        assert made.status_code == 201
        assert made.json()["slug"] == "vis"
        changed = sent(api, "patch", f"{API}vis/", {"name": "Speech", "is_archived": True}).json()
        assert changed["name"] == "Speech"
        assert changed["archived_at"] is not None
        assert sent(api, "patch", f"{API}vis/", {"is_archived": False}).json()["archived_at"] is None
        assert [row["slug"] for row in api.get(API).json()] == ["default", "vis"]

    def test_a_refusal_names_the_field(self, api: Client) -> None:
        answer = sent(api, "post", API, {"name": "A", "owner": "nobody"})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "owner"

    def test_others_see_their_own_only(self) -> None:
        make_workspace("other")
        program = api_client(make_viewer())
        assert [row["slug"] for row in program.get(API).json()] == ["default"]
        assert program.get(f"{API}other/").status_code == 404
        assert sent(program, "post", API, {"name": "B"}).status_code == 403

    def test_a_token_shows_nothing_of_the_person_s_other_workspaces(self) -> None:
        vera = make_viewer()
        Membership.objects.create(workspace=make_workspace("other"), user=vera, role=Role.VIEWER)
        assert [row["slug"] for row in api_client(vera).get(API).json()] == ["default"]
        assert [row["slug"] for row in client_of(vera).get(API).json()] == ["default", "other"]


class TestMembersApi:
    def test_an_owner_adds_changes_and_removes(self) -> None:
        program = api_client(make_owner())
        members = f"{API}default/members/"
        added = sent(program, "post", members, {"username": "nora", "role": "viewer"})
        assert added.status_code == 201
        assert added.headers["Cache-Control"] == "no-store"
        password = added.json()["one_time_password"]
        assert User.objects.get(username="nora").check_password(password)
        assert (
            sent(program, "patch", f"{members}nora/", {"role": "contributor"}).json()["role"] == "contributor"
        )
        assert {row["username"] for row in program.get(members).json()} == {"nora", "olivia"}
        assert program.delete(f"{members}nora/").status_code == 204
        assert program.delete(f"{members}nora/").status_code == 404

    def test_somebody_with_an_account_is_invited(self) -> None:
        make_person("ines")
        answer = sent(
            api_client(make_owner()), "post", f"{API}default/members/", {"username": "ines", "role": "viewer"}
        )
        assert answer.json() == {
            "username": "ines",
            "role": "viewer",
            "is_invited": True,
            "one_time_password": None,
        }

    def test_the_only_owner_stays(self) -> None:
        program = api_client(make_owner())
        for answer in (
            sent(program, "patch", f"{API}default/members/olivia/", {"role": "viewer"}),
            program.delete(f"{API}default/members/olivia/"),
        ):
            assert answer.status_code == 400
            assert "olivia is the only owner" in answer.json()["detail"]

    def test_a_token_of_another_workspace_manages_nobody_here(self, api: Client) -> None:
        make_workspace("other")
        answer = sent(api, "post", f"{API}other/members/", {"username": "nora", "role": "viewer"})
        assert answer.status_code == 403
        assert "use a token that was made in other" in answer.json()["detail"]
        assert not User.objects.filter(username="nora").exists()


class TestWorkspaceHeader:
    @pytest.mark.parametrize("path", ["/api/v1/me/", "/api/v1/runs/"])
    def test_a_token_is_refused_in_another_workspace(self, path: str) -> None:
        vera = make_viewer()
        Membership.objects.create(workspace=make_workspace("other"), user=vera, role=Role.VIEWER)
        program = api_client(vera)
        assert program.get(path, headers={"X-TrainHub-Workspace": "default"}).status_code == 200
        answer = program.get(path, headers={"X-TrainHub-Workspace": "other"})
        assert answer.status_code == 403
        assert "This token acts in the workspace default" in answer.json()["detail"]

    def test_a_session_acts_in_the_named_one(self) -> None:
        vera = make_viewer()
        Membership.objects.create(workspace=make_workspace("other"), user=vera, role=Role.VIEWER)
        make_workspace("third")
        browser = client_of(vera)
        for slug, status in (("other", 200), ("third", 404), ("none", 404)):
            answer = browser.get("/api/v1/me/", headers={"X-TrainHub-Workspace": slug})
            assert answer.status_code == status
        assert browser.get("/api/v1/me/").json()["workspace"] == "default", "the session stays where it is"
