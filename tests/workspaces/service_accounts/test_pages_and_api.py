"""The pages and the API by which owners manage service accounts."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.people import api_client, client_of, make_contributor, make_owner, make_viewer, make_workspace
from workspaces.models import ApiToken, AuditEvent, User
from workspaces.service_accounts import accounts
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
JSON = "application/json"
API = "/api/v1/workspaces/default/service-accounts/"


@pytest.fixture
def page() -> Client:
    return client_of(make_owner())


@pytest.fixture
def account() -> User:
    return accounts.create(make_owner(), make_workspace(), "ci-nightly", Role.CONTRIBUTOR)


class TestPages:
    def test_make_one_with_a_token_that_is_shown_once(self, page: Client) -> None:
        made = page.post("/settings/service-accounts/create/", {"name": "ci-nightly", "role": "viewer"})
        address = made.headers["Location"]
        answer = page.post(f"{address}tokens/", {"name": "cron", "scope": "read", "expires": "30"})
        text = re.search(r"th_[\w-]{43}", answer.content.decode())
        assert text is not None
        assert "no-store" in answer.headers["Cache-Control"]
        assert text[0] not in page.get(address).content.decode()
        me = Client(headers={"authorization": f"Bearer {text[0]}"}).get("/api/v1/me/").json()
        assert (me["user"], me["role"], me["scope"]) == ("ci-nightly", "viewer", "read")

    def test_show_it_apart_from_people(self, page: Client, account: User) -> None:
        text = page.get("/settings/").content.decode()
        assert '<span class="th-tag">service account</span>' in text
        assert f'href="/settings/service-accounts/{account.pk}/"' in text
        assert '<h2 id="members-title">Members of Default</h2><span class="th-count">1</span>' in text

    def test_change_disable_and_delete_it(self, page: Client, account: User) -> None:
        address = f"/settings/service-accounts/{account.pk}/"
        page.post(f"{address}role/", {"role": "viewer"})
        page.post(f"{address}state/", {"is_active": "no"})
        assert "disabled" in page.get(address).content.decode()
        assert accounts.listed(make_workspace()).get().role == "viewer"  # type: ignore[attr-defined]
        page.post(f"{address}state/", {"is_active": "yes"})
        page.post(f"{address}tokens/", {"name": "cron"})
        token = ApiToken.objects.get(user=account)
        page.post(f"{address}tokens/{token.pk}/revoke/")
        assert AuditEvent.objects.get(verb="token.revoked").detail == {"user": "ci-nightly"}
        page.post(f"{address}delete/")
        assert page.get(address).status_code == 404

    def test_refuse_a_name_that_is_taken_beside_its_field(self, page: Client) -> None:
        make_contributor()
        answer = page.post("/settings/service-accounts/create/", {"name": "carl", "role": "viewer"})
        assert answer.status_code == 400
        assert "Carl is the name of a person here" in answer.content.decode()

    def test_are_for_owners(self, account: User) -> None:
        member = client_of(make_contributor())
        assert member.get("/settings/service-accounts/").status_code == 403
        assert member.post(f"/settings/service-accounts/{account.pk}/tokens/").status_code == 403
        assert "Manage</a>" not in member.get("/settings/").content.decode()


class TestApi:
    def test_makes_changes_and_deletes_one(self) -> None:
        owner = api_client(make_owner())
        made = owner.post(API, {"name": "ci-nightly"}, content_type=JSON)
        assert (made.status_code, made.json()["role"], made.json()["made_by"]) == (
            201,
            "contributor",
            "olivia",
        )
        assert [row["name"] for row in owner.get(API).json()] == ["ci-nightly"]
        token = owner.post(f"{API}ci-nightly/tokens/", {"name": "cron", "days": 0}, content_type=JSON).json()
        assert (token["expires_at"], token["scope"]) == (None, "submit")
        assert [row["name"] for row in owner.get(f"{API}ci-nightly/tokens/").json()] == ["cron"]
        changed = owner.patch(f"{API}ci-nightly/", {"role": "viewer", "is_active": False}, content_type=JSON)
        assert (changed.json()["role"], changed.json()["is_active"]) == ("viewer", False)
        assert owner.get(f"{API}ci-nightly/").json()["tokens"] == 1
        assert owner.delete(f"{API}ci-nightly/tokens/{token['id']}/").status_code == 204
        assert owner.delete(f"{API}ci-nightly/").status_code == 204
        assert owner.get(f"{API}ci-nightly/").status_code == 404

    def test_refuses_in_the_same_words_as_the_page(self) -> None:
        make_contributor()
        owner = api_client(make_owner())
        answer = owner.post(API, {"name": "carl"}, content_type=JSON)
        assert answer.status_code == 400
        assert "name: carl is the name of a person here" in answer.json()["detail"]
        assert owner.post(API, {"name": "x", "role": "owner"}, content_type=JSON).status_code == 400

    def test_lists_no_service_account_among_the_members(self, account: User) -> None:
        owner = api_client(make_owner())
        members = owner.get("/api/v1/workspaces/default/members/").json()
        assert [row["username"] for row in members] == ["olivia"]
        assert owner.get("/api/v1/workspaces/default/").json()["members"] == 1
        patched = owner.patch(
            "/api/v1/workspaces/default/members/ci-nightly/", {"role": "owner"}, content_type=JSON
        )
        assert patched.status_code == 404

    def test_is_for_owners(self, account: User) -> None:
        assert api_client(make_viewer()).get(API).status_code == 403
