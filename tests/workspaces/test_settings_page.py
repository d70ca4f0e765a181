from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.people import PASSWORD, client_of, make_person, make_workspace, token_of
from workspaces import tokens
from workspaces.authentication.token_text import digest
from workspaces.models import ApiToken, AuditEvent, Invitation, Membership, User
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def member(user: User) -> Membership:
    return Membership.objects.get(user=user)


def said(client: Client, path: str, **form: str) -> str:
    return client.post(path, form, follow=True).content.decode()


class TestTokens:
    def test_a_new_one_is_shown_once(self, viewer: User) -> None:
        client = client_of(viewer)
        answer = client.post("/settings/tokens/", {"name": "laptop"})
        found = re.search(r'data-text="(th_[^"]+)"', answer.content.decode())
        assert found is not None
        assert answer.headers["Cache-Control"] == "no-store, no-transform"
        assert tokens.authenticate(found[1]) is not None
        assert found[1] not in client.get("/settings/").content.decode()

    def test_one_without_a_name_is_refused_at_the_field(self, viewer: User) -> None:
        answer = client_of(viewer).post("/settings/tokens/", {"name": ""})
        assert answer.status_code == 400
        assert b"This field is required" in answer.content

    def test_a_revoked_one_is_gone(self, viewer: User) -> None:
        text = token_of(viewer)
        said(client_of(viewer), f"/settings/tokens/{ApiToken.objects.get().pk}/revoke/")
        assert tokens.authenticate(text) is None

    def test_nobody_revokes_anothers(self, viewer: User, owner: User) -> None:
        text = token_of(viewer)
        answer = client_of(owner).post(f"/settings/tokens/{ApiToken.objects.get().pk}/revoke/")
        assert answer.status_code == 404
        assert tokens.authenticate(text) is not None


class TestMembers:
    def test_an_owner_adds_somebody_new_with_a_one_time_password(self, owner: User) -> None:
        page = said(client_of(owner), "/settings/members/", username="nora", role="contributor")
        found = re.search(r'data-new-password>.*?data-text="([^"]+)"', page, re.DOTALL)
        assert found is not None
        nora = User.objects.get(username="nora")
        assert nora.check_password(found[1])
        assert member(nora).role == Role.CONTRIBUTOR
        assert AuditEvent.objects.get(verb="member.added").subject == "nora"

    def test_an_owner_invites_somebody_who_exists_and_learns_no_password(self, owner: User) -> None:
        stan = make_person("stan")
        page = said(client_of(owner), "/settings/members/", username="Stan", role="viewer")
        assert "data-new-password" not in page
        assert "stan is invited. They become a member when they accept." in page
        assert not Membership.objects.filter(user=stan).exists()

    def test_who_is_invited_already_is_not_invited_with_another_role(self, owner: User) -> None:
        stan, client = make_person("stan"), client_of(owner)
        said(client, "/settings/members/", username="stan", role="viewer")
        page = said(client, "/settings/members/", username="stan", role="owner")
        assert "stan is invited already; withdraw the invitation to offer another role" in page
        assert Invitation.objects.get(user=stan).role == Role.VIEWER

    def test_a_name_in_another_spelling_of_unicode_is_the_same_name(self, owner: User) -> None:
        make_person("fiona")
        page = said(client_of(owner), "/settings/members/", username="ﬁona", role="viewer")
        assert "fiona is invited." in page
        assert User.objects.filter(username__endswith="ona").count() == 1

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [("vera", "is a member already"), ("a b", "use letters, digits"), ("", "This field is required")],
    )
    def test_a_wrong_name_is_refused_at_the_field(
        self, owner: User, viewer: User, name: str, sentence: str
    ) -> None:
        assert sentence in said(client_of(owner), "/settings/members/", username=name, role="viewer")

    def test_a_role_can_be_changed(self, owner: User, viewer: User) -> None:
        assert "vera is now owner" in said(
            client_of(owner), f"/settings/members/{member(viewer).pk}/role/", role="owner"
        )
        assert member(viewer).role == Role.OWNER

    def test_an_unknown_role_is_refused(self, owner: User, viewer: User) -> None:
        page = said(client_of(owner), f"/settings/members/{member(viewer).pk}/role/", role="king")
        assert "Choose viewer, contributor or owner." in page

    def test_removing_ends_membership_and_tokens(self, owner: User, viewer: User) -> None:
        text = token_of(viewer)
        said(client_of(owner), f"/settings/members/{member(viewer).pk}/remove/")
        assert not Membership.objects.filter(user=viewer).exists()
        assert ApiToken.objects.get(digest=digest(text)).revoked_at is not None
        assert client_of(viewer).get("/settings/").status_code == 404

    @pytest.mark.parametrize("verb", ["remove", "role"])
    def test_the_last_owner_stays(self, owner: User, verb: str) -> None:
        page = said(client_of(owner), f"/settings/members/{member(owner).pk}/{verb}/", role="viewer")
        assert "olivia is the only owner; make somebody else owner first." in page
        assert member(owner).role == Role.OWNER

    def test_one_of_two_owners_may_go(self, owner: User) -> None:
        make_person("otto", Role.OWNER)
        client_of(owner).post(f"/settings/members/{member(owner).pk}/remove/")
        assert not Membership.objects.filter(user=owner).exists()

    def test_only_owners_manage_people(self, contributor: User, viewer: User) -> None:
        client = client_of(contributor)
        assert client.post("/settings/members/", {"username": "nora", "role": "owner"}).status_code == 403
        assert (
            client.post(f"/settings/members/{member(viewer).pk}/role/", {"role": "owner"}).status_code == 403
        )
        assert client.post(f"/settings/members/{member(viewer).pk}/remove/").status_code == 403

    def test_an_owner_reaches_no_other_workspace(self, owner: User) -> None:
        other = make_person("otto", Role.OWNER, make_workspace("other"))
        assert client_of(owner).post(f"/settings/members/{member(other).pk}/remove/").status_code == 404


class TestPassword:
    def test_a_one_time_password_opens_only_the_page_that_replaces_it(self, viewer: User) -> None:
        viewer.set_password("once-only-9x")
        viewer.password_is_one_time = True
        viewer.save()
        client = client_of(viewer)
        assert client.get("/settings/").headers["Location"] == "/settings/password/"
        form = {"old_password": "once-only-9x", "new_password1": PASSWORD, "new_password2": PASSWORD}
        assert client.post("/settings/password/", form).headers["Location"] == "/settings/"
        assert client.get("/settings/").status_code == 200
        viewer.refresh_from_db()
        assert not viewer.password_is_one_time

    def test_a_weak_one_is_refused(self, viewer: User) -> None:
        viewer.set_password(PASSWORD)
        viewer.save()
        form = {"old_password": PASSWORD, "new_password1": "12345", "new_password2": "12345"}
        assert "too short" in said(client_of(viewer), "/settings/password/", **form)
