"""People without an account are invited by mail or by a link."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.people import (
    PASSWORD,
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
)
from tests.workspaces.mail.mailbox import Mailbox, path_in
from workspaces import people
from workspaces.administration import accounts, workspace_changes
from workspaces.mail import invitation_links, outgoing_mails
from workspaces.models import AuditEvent, InvitationLink, Membership, User
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
SHOWN = re.compile(r'data-link>.*?data-text="https?://[^/]+([^"]+)"', re.DOTALL)
NEW = {"username": "nora", "new_password1": PASSWORD, "new_password2": PASSWORD}
ADDRESS = "nora@example.org"


@pytest.fixture
def owner() -> User:
    return make_owner()


@pytest.fixture
def page(owner: User) -> Client:
    return client_of(owner)


def invite(page: Client, **fields: object) -> str:
    form = {"workspace": make_workspace().pk, "role": "contributor", "address": "", **fields}
    return page.post("/settings/invitations/create/", form, follow=True).content.decode()


def link_of(page: Client, **fields: object) -> str:
    text = invite(page, **fields)
    match = SHOWN.search(text)
    assert match is not None, text
    return match[1]


def role_of(name: str) -> str | None:
    membership = Membership.objects.filter(user__username=name, workspace=make_workspace()).first()
    return None if membership is None else membership.role


class TestLink:
    def test_a_new_person_chooses_name_and_password(self, page: Client) -> None:
        path = link_of(page)
        visitor = Client()
        form = visitor.get(path)
        assert "olivia invites you as contributor" in form.content.decode()
        assert form.headers["Cache-Control"] == "no-store, no-transform"
        assert visitor.post(path, NEW).headers["Location"] == "/sign-in/"
        assert role_of("nora") == "contributor"
        answer = visitor.post("/sign-in/", {"username": "nora", "password": PASSWORD})
        assert answer.headers["Location"] == "/"
        verbs = AuditEvent.objects.order_by("pk").values_list("verb", flat=True)
        assert [verb for verb in verbs if "sign" not in verb] == [
            "invitation.link_created",
            "person.created",
            "invitation.accepted",
        ]

    def test_works_once(self, page: Client) -> None:
        path = link_of(page)
        Client().post(path, NEW)
        assert Client().get(path).status_code == 404
        assert Client().post(path, {**NEW, "username": "nils"}).status_code == 404
        assert not User.objects.filter(username="nils").exists()

    def test_expires_after_a_week(self, page: Client) -> None:
        path = link_of(page)
        left = InvitationLink.objects.get().expires_at - timezone.now()
        assert timedelta(days=6) < left <= timedelta(days=7)
        InvitationLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert Client().post(path, NEW).status_code == 404

    def test_can_be_withdrawn(self, page: Client) -> None:
        path = link_of(page)
        page.post(f"/settings/invitations/{InvitationLink.objects.get().pk}/withdraw/")
        assert Client().get(path).status_code == 404

    def test_a_name_that_is_taken_or_a_weak_password_is_refused_and_the_link_stays(
        self, page: Client
    ) -> None:
        path = link_of(page)
        for form, words in (
            ({**NEW, "username": "Olivia"}, "Somebody here has this name already"),
            ({**NEW, "username": "a b"}, "Use letters, digits and @ . + - _ only"),
            ({**NEW, "username": "nora\x00"}, "Null characters are not allowed"),
            ({**NEW, "new_password1": "short", "new_password2": "short"}, "too short"),
            ({**NEW, "new_password2": "another one 123"}, "The two passwords differ"),
        ):
            assert words in Client().post(path, form).content.decode()
        assert User.objects.count() == 1
        assert Client().get(path).status_code == 200


class TestExistingPerson:
    def test_accepts_with_their_account(self, page: Client) -> None:
        path, stan = link_of(page), make_person("stan")
        client = client_of(stan)
        assert "Accept as stan" in client.get(path).content.decode()
        assert role_of("stan") is None, "opening the page alone changes nothing"
        assert client.post(path).headers["Location"] == "/"
        assert role_of("stan") == "contributor"

    def test_signs_in_for_it_without_any_membership(self, page: Client) -> None:
        path, stan = link_of(page), make_person("stan")
        stan.set_password(PASSWORD)
        stan.save()
        form = {"username": "stan", "password": PASSWORD}
        refused = Client().post("/sign-in/", form).content.decode()
        assert "You are not a member of any workspace" in refused
        assert "not a member" in Client().post("/sign-in/", {**form, "next": f"{path}x"}).content.decode()
        answer = Client().post("/sign-in/", {**form, "next": path})
        assert answer.headers["Location"] == path

    def test_keeps_the_role_that_they_have(self, page: Client) -> None:
        path, carl = link_of(page, role="viewer"), make_contributor()
        client_of(carl).post(path)
        assert role_of("carl") == "contributor"
        assert not InvitationLink.objects.exists()


class TestMail:
    def test_brings_the_link_and_proves_the_address(self, page: Client, mailbox: Mailbox) -> None:
        assert f"An invitation is on its way to {ADDRESS}." in invite(page, address=ADDRESS)
        outgoing_mails.tick(timezone.now())
        letter = mailbox.letter_to(ADDRESS)
        assert letter["Subject"] == "TrainHub: Invitation to Default"
        Client().post(path_in(letter), NEW)
        assert User.objects.get(username="nora").email == ADDRESS
        assert role_of("nora") == "contributor"

    def test_leaves_an_address_that_somebody_has_to_them(self, page: Client, mailbox: Mailbox) -> None:
        User.objects.filter(pk=make_person("stan").pk).update(email=ADDRESS)
        invite(page, address=ADDRESS)
        outgoing_mails.tick(timezone.now())
        Client().post(path_in(mailbox.letter_to(ADDRESS)), NEW)
        assert User.objects.get(username="nora").email == ""

    def test_is_refused_for_a_member_and_for_somebody_who_is_invited(
        self, page: Client, owner: User, mailbox: Mailbox
    ) -> None:
        User.objects.filter(pk=owner.pk).update(email="olivia@example.org")
        assert "who is a member already" in invite(page, address="OLIVIA@example.org")
        invite(page, address=ADDRESS)
        assert "is invited already" in invite(page, address=ADDRESS.upper())
        assert "must be a mail address" in invite(page, address="nora")

    def test_is_refused_by_a_hub_that_sends_none(self, page: Client) -> None:
        assert "this hub sends no mail" in invite(page, address=ADDRESS)
        assert not InvitationLink.objects.exists()


class TestWhoMayInvite:
    def test_a_contributor_may_not(self) -> None:
        client = client_of(make_contributor())
        assert client.get("/settings/invitations/").status_code == 403
        assert client.post("/settings/invitations/create/").status_code == 403

    def test_an_owner_only_to_their_workspace_an_operator_to_all(self, page: Client) -> None:
        other = make_workspace("other")
        assert "Select a valid choice" in invite(page, workspace=other.pk)
        make_operator()
        assert "data-link" in invite(page, workspace=other.pk)

    def test_the_invitations_of_an_owner_who_is_none_any_more_end(self, page: Client, owner: User) -> None:
        path = link_of(page)
        make_person("oscar", Role.OWNER)
        people.change_role(principal_of(owner), Membership.objects.get(user=owner), Role.VIEWER)
        assert Client().get(path).status_code == 404

    def test_those_of_a_person_who_is_deactivated_end(self, page: Client, owner: User) -> None:
        path = link_of(page)
        make_person("oscar", Role.OWNER)
        accounts.deactivate("test", owner)
        assert Client().get(path).status_code == 404

    def test_those_of_somebody_who_is_no_operator_any_more_end(self, page: Client, owner: User) -> None:
        make_operator()
        accounts.set_operator("test", make_person("oscar"), is_operator=True)
        own, foreign = link_of(page), link_of(page, workspace=make_workspace("other").pk)
        accounts.set_operator("test", owner, is_operator=False)
        assert Client().get(own).status_code == 200
        assert Client().get(foreign).status_code == 404

    def test_those_to_an_archived_workspace_end(self, page: Client) -> None:
        path, workspace = link_of(page), make_workspace()
        make_workspace("other")
        workspace_changes.archive("test", workspace)
        workspace_changes.restore("test", workspace)
        assert Client().get(path).status_code == 404

    def test_there_are_at_most_a_hundred(self, owner: User) -> None:
        for _ in range(invitation_links.MAX_OPEN):
            invitation_links.create_link(owner, make_workspace(), Role.VIEWER)
        assert "has 100 open invitations" in invite(client_of(owner))


class TestApi:
    URL = "/api/v1/workspaces/default/invitations/"

    def test_makes_lists_and_withdraws(self, owner: User) -> None:
        client = api_client(owner)
        made = client.post(self.URL, {"role": "viewer"}).json()
        assert "/sign-in/invitation/thi_" in made["link"]
        assert [row["id"] for row in client.get(self.URL).json()] == [made["id"]]
        assert client.delete(f"{self.URL}{made['id']}/").status_code == 204
        assert client.get(self.URL).json() == []

    def test_sends_a_mail(self, owner: User, mailbox: Mailbox) -> None:
        made = api_client(owner).post(self.URL, {"role": "viewer", "address": ADDRESS}).json()
        assert (made["link"], made["address"]) == (None, ADDRESS)
        outgoing_mails.tick(timezone.now())
        assert mailbox.letter_to(ADDRESS)

    def test_names_the_field_of_a_refusal(self, owner: User) -> None:
        answer = api_client(owner).post(self.URL, {"role": "viewer", "address": "x"})
        assert answer.status_code == 400
        assert "this hub sends no mail" in answer.json()["detail"]


class TestCommand:
    def test_prints_a_link(self, capsys: pytest.CaptureFixture[str]) -> None:
        make_workspace()
        call_command("workspace", "invite", "default", "--role", "owner")
        path = re.sub(r"^https?://[^/]+", "", capsys.readouterr().out.strip())
        assert "command line invites you as owner" in Client().get(path).content.decode()

    def test_refuses_mail_without_a_server(self) -> None:
        make_workspace()
        with pytest.raises(CommandError, match="address: cannot be used: this hub sends no mail"):
            call_command("workspace", "invite", "default", "--mail", ADDRESS)
