"""S14: an owner pulls a person into a workspace, or gains power over an account through its name."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.markup import one_line
from tests.people import PASSWORD, client_of, make_person, make_workspace, token_of
from workspaces import tokens
from workspaces.models import ApiToken, Invitation, Membership, User, Workspace
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Workspace:
    """A workspace that is older than the victim's, so that its number is lower."""
    return make_workspace("aaa-other")


@pytest.fixture
def attacker(other: Workspace) -> Client:
    return client_of(make_person("otto", Role.OWNER, other))


@pytest.fixture
def mallory(attacker: Client) -> User:
    """The victim: an owner of a workspace of her own, with a password of her own."""
    user = make_person("mallory", Role.OWNER, make_workspace("mine"))
    user.set_password(PASSWORD)
    user.save()
    return user


def add(client: Client, name: str, role: str = "viewer") -> str:
    return client.post("/settings/members/", {"username": name, "role": role}, follow=True).content.decode()


def password_in(page: str) -> str:
    found = re.search(r'data-new-password>.*?data-text="([^"]+)"', page, re.DOTALL)
    assert found is not None, page
    return found[1]


def sign_in(name: str, password: str) -> Client:
    client = Client()
    assert client.post("/sign-in/", {"username": name, "password": password}).status_code == 302
    return client


def workspace_of(client: Client) -> str:
    page = client.get("/settings/")
    assert page.status_code == 200
    return str(page.context["principal"].workspace.slug)


class TestWithoutConsent:
    def test_a_person_who_is_added_stays_in_their_own_workspace(
        self, attacker: Client, mallory: User
    ) -> None:
        """Her session was a viewer of the other workspace from then on; her own was out of reach."""
        client = client_of(mallory)
        add(attacker, "mallory")
        assert workspace_of(client) == "mine"
        assert client.get("/runs/new/").status_code == 200
        assert workspace_of(client_of(mallory)) == "mine"
        assert not Membership.objects.filter(user=mallory, workspace__slug="aaa-other").exists()

    def test_even_a_member_of_both_acts_in_the_one_joined_first(
        self, mallory: User, other: Workspace
    ) -> None:
        before = client_of(mallory)
        assert workspace_of(before) == "mine"
        Membership.objects.create(user=mallory, workspace=other, role=Role.VIEWER)
        assert workspace_of(before) == "mine"
        assert workspace_of(client_of(mallory)) == "mine"

    def test_who_declines_is_no_member_and_may_be_invited_again(
        self, attacker: Client, mallory: User
    ) -> None:
        add(attacker, "mallory")
        client = client_of(mallory)
        assert client.post(f"/invitations/{Invitation.objects.get().pk}/decline/").status_code == 302
        assert not Invitation.objects.exists()
        assert Membership.objects.filter(user=mallory).count() == 1
        add(attacker, "mallory")
        assert Invitation.objects.count() == 1

    def test_nobody_else_accepts(self, attacker: Client, mallory: User) -> None:
        add(attacker, "mallory", "owner")
        pk = Invitation.objects.get().pk
        assert attacker.post(f"/invitations/{pk}/accept/").status_code == 404
        assert client_of(make_person("stan")).post(f"/invitations/{pk}/accept/").status_code == 404
        assert Membership.objects.filter(user=mallory).count() == 1

    def test_one_that_was_withdrawn_cannot_be_accepted(self, attacker: Client, mallory: User) -> None:
        add(attacker, "mallory")
        pk = Invitation.objects.get().pk
        assert attacker.post(f"/settings/members/invitations/{pk}/withdraw/").status_code == 302
        assert client_of(mallory).post(f"/invitations/{pk}/accept/").status_code == 404

    @pytest.mark.parametrize("verb", ["remove", "role"])
    def test_who_is_no_owner_any_more_does_not_come_back_by_an_own_invitation(
        self, attacker: Client, mallory: User, other: Workspace, verb: str
    ) -> None:
        add(attacker, "mallory", "owner")
        pk = Invitation.objects.get().pk
        otto = Membership.objects.get(user__username="otto")
        good = client_of(make_person("olga", Role.OWNER, other))
        assert good.post(f"/settings/members/{otto.pk}/{verb}/", {"role": "viewer"}).status_code == 302
        assert client_of(mallory).post(f"/invitations/{pk}/accept/").status_code == 404
        assert not Membership.objects.filter(user=mallory, workspace=other).exists()

    def test_an_owner_withdraws_no_invitation_of_another_workspace(
        self, attacker: Client, mallory: User
    ) -> None:
        add(attacker, "mallory")
        pk = Invitation.objects.get().pk
        assert client_of(mallory).post(f"/settings/members/invitations/{pk}/withdraw/").status_code == 404
        assert Invitation.objects.exists()

    def test_only_owners_invite(self, attacker: Client, mallory: User, other: Workspace) -> None:
        contributor = client_of(make_person("carl", Role.CONTRIBUTOR, other))
        assert (
            contributor.post("/settings/members/", {"username": "mallory", "role": "owner"}).status_code
            == 403
        )


class TestConsent:
    def test_who_accepts_acts_there_and_can_go_back(self, attacker: Client, mallory: User) -> None:
        add(attacker, "mallory", "contributor")
        client = client_of(mallory)
        page = client.get("/invitations/").content.decode()
        assert "otto invites you to become contributor" in one_line(page)
        client.post(f"/invitations/{Invitation.objects.get().pk}/accept/")
        assert workspace_of(client) == "aaa-other"
        mine = Workspace.objects.get(slug="mine")
        assert client.post(f"/workspaces/{mine.pk}/choose/").status_code == 302
        assert workspace_of(client) == "mine"
        assert workspace_of(client_of(mallory)) == "mine"

    def test_nobody_chooses_a_workspace_that_is_not_theirs(self, mallory: User, other: Workspace) -> None:
        client = client_of(mallory)
        assert client.post(f"/workspaces/{other.pk}/choose/").status_code == 404
        assert workspace_of(client) == "mine"

    def test_a_member_of_nothing_signs_in_to_answer_and_finds_nothing_else(self, attacker: Client) -> None:
        stan = make_person("stan")
        stan.set_password(PASSWORD)
        stan.save()
        add(attacker, "stan")
        client = sign_in("stan", PASSWORD)
        assert client.get("/").headers["Location"] == "/invitations/"
        assert client.get("/settings/").headers["Location"] == "/invitations/"
        assert client.get("/api/v1/runs/").status_code == 404
        assert "Accept" in client.get("/invitations/").content.decode()
        client.post(f"/invitations/{Invitation.objects.get().pk}/accept/")
        assert workspace_of(client) == "aaa-other"

    def test_a_form_of_a_workspace_that_one_has_left_does_nothing_elsewhere(
        self, mallory: User, other: Workspace
    ) -> None:
        membership = Membership.objects.create(user=mallory, workspace=other, role=Role.CONTRIBUTOR)
        client = client_of(mallory)
        client.post(f"/workspaces/{other.pk}/choose/")
        membership.delete()
        assert client.post("/settings/tokens/", {"name": "laptop"}).status_code == 403
        assert not ApiToken.objects.exists()
        assert workspace_of(client) == "mine"
        assert client.post("/settings/tokens/", {"name": "laptop"}).status_code == 200


class TestTokens:
    def test_a_token_stays_in_the_workspace_in_which_it_was_made(
        self, attacker: Client, mallory: User, other: Workspace
    ) -> None:
        text = token_of(mallory, Workspace.objects.get(slug="mine"))
        Membership.objects.create(user=mallory, workspace=other, role=Role.VIEWER)
        answer = Client(headers={"authorization": f"Bearer {text}"}).get("/api/v1/me/").json()
        assert answer["workspace"] == "mine"

    def test_a_new_token_belongs_to_the_workspace_that_the_session_shows(
        self, mallory: User, other: Workspace
    ) -> None:
        Membership.objects.create(user=mallory, workspace=other, role=Role.VIEWER)
        client = client_of(mallory)
        client.post(f"/workspaces/{other.pk}/choose/")
        client.post("/settings/tokens/", {"name": "laptop"})
        assert ApiToken.objects.get().workspace == other


class TestReservedNames:
    def test_an_account_whose_first_password_an_owner_knows_cannot_be_invited_elsewhere(
        self, attacker: Client, mallory: User
    ) -> None:
        password_in(add(attacker, "alice"))
        page = add(client_of(mallory), "alice", "owner")
        assert "has not chosen a password of their own yet" in page
        assert not Invitation.objects.exists()
        assert not Membership.objects.filter(user__username="alice", workspace__slug="mine").exists()

    def test_one_that_was_removed_gets_a_new_first_password_elsewhere(
        self, attacker: Client, mallory: User
    ) -> None:
        known = password_in(add(attacker, "alice"))
        alice = User.objects.get(username="alice")
        attacker.post(f"/settings/members/{Membership.objects.get(user=alice).pk}/remove/")
        new = password_in(add(client_of(mallory), "Alice", "owner"))
        assert Client().post("/sign-in/", {"username": "alice", "password": known}).status_code == 200
        assert sign_in("alice", new).get("/settings/").headers["Location"] == "/settings/password/"
        assert [item.workspace.slug for item in alice.memberships.all()] == ["mine"]

    def test_a_first_password_opens_nothing_but_the_page_that_replaces_it(self, attacker: Client) -> None:
        client = sign_in("alice", password_in(add(attacker, "alice", "owner")))
        for page in ("/", "/settings/", "/settings/confirm/", "/invitations/"):
            assert client.get(page).headers["Location"] == "/settings/password/"
        assert client.post("/settings/tokens/", {"name": "x"}).headers["Location"] == "/settings/password/"
        assert client.get("/api/v1/runs/").status_code == 403
        assert not ApiToken.objects.exists()


def test_a_removed_member_has_no_token_and_no_session_left(
    attacker: Client, mallory: User, other: Workspace
) -> None:
    membership = Membership.objects.create(user=mallory, workspace=other, role=Role.OWNER)
    text = token_of(mallory, other)
    attacker.post(f"/settings/members/{membership.pk}/remove/")
    assert tokens.authenticate(text) is None
