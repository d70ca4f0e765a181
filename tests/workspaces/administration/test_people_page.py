"""Operators help people who cannot sign in, make operators, and let leavers out."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Run
from jobs.states import RunState
from tests.jobs.builders import queued
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
from workspaces.models import AuditEvent, Channel, Invitation, Membership, PasswordLink, User
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
LINK = re.compile(r'data-link>.*?data-text="https?://[^/]+([^"]+)"', re.DOTALL)
NEW = {"new_password1": PASSWORD, "new_password2": PASSWORD}


@pytest.fixture
def operator() -> User:
    return make_operator()


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.set_password("the old one 123")
    user.save()
    return user


@pytest.fixture
def page(operator: User) -> Client:
    return client_of(operator)


def link_for(page: Client, user: User) -> str:
    match = LINK.search(page.post(f"/people/{user.pk}/link/").content.decode())
    assert match is not None
    return match[1]


def said(page: Client, path: str, **form: str) -> str:
    return page.post(path, form, follow=True).content.decode()


class TestList:
    def test_shows_accounts_with_state_and_workspaces(self, page: Client, carl: User) -> None:
        User.objects.filter(pk=make_person("gone").pk).update(is_active=False)
        text = page.get("/people/").content.decode()
        assert re.search(r"carl</a>.*?Default <span class=\"th-muted\">contributor</span>", text, re.DOTALL)
        assert re.search(r"gone</a>.*?deactivated.*?none", text, re.DOTALL)

    def test_finds_by_a_part_of_the_name(self, page: Client, carl: User) -> None:
        text = page.get("/people/?q=AR").content.decode()
        assert ">carl</a>" in text
        assert ">olivia</a>" not in text
        assert "No user name contains" in page.get("/people/?q=nobody").content.decode()

    def test_is_for_operators_only(self, carl: User) -> None:
        assert client_of(carl).get("/people/").status_code == 403
        assert 'href="/people/"' not in client_of(carl).get("/settings/").content.decode()


class TestPasswordLink:
    def test_the_person_chooses_a_password_and_signs_in_with_it(self, page: Client, carl: User) -> None:
        path = link_for(page, carl)
        visitor = Client()
        form = visitor.get(path)
        assert "Choose a password for carl" in form.content.decode()
        assert form.headers["Cache-Control"] == "no-store, no-transform"
        assert visitor.post(path, NEW).headers["Location"] == "/sign-in/"
        assert visitor.login(username="carl", password=PASSWORD)
        events = AuditEvent.objects.filter(verb__startswith="password.").order_by("pk")
        assert [event.verb for event in events] == ["password.link_created", "password.changed_by_link"]

    def test_works_once(self, page: Client, carl: User) -> None:
        path = link_for(page, carl)
        Client().post(path, NEW)
        for answer in (Client().get(path), Client().post(path, NEW)):
            assert answer.status_code == 404
            assert "It was used already" in answer.content.decode()

    def test_a_newer_link_replaces_it(self, page: Client, carl: User) -> None:
        first, second = link_for(page, carl), link_for(page, carl)
        assert Client().get(first).status_code == 404
        assert Client().get(second).status_code == 200

    def test_expires_after_a_day(self, page: Client, carl: User) -> None:
        path = link_for(page, carl)
        PasswordLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert Client().get(path).status_code == 404

    def test_ends_the_sessions_of_the_person(self, page: Client, carl: User) -> None:
        other = client_of(carl)
        Client().post(link_for(page, carl), NEW)
        assert other.get("/").headers["Location"].startswith("/sign-in/")
        assert page.get("/people/").status_code == 200

    def test_a_weak_password_is_refused_and_the_link_stays(self, page: Client, carl: User) -> None:
        path = link_for(page, carl)
        answer = Client().post(path, {"new_password1": "12345", "new_password2": "12345"})
        assert "too short" in answer.content.decode()
        assert Client().get(path).status_code == 200

    def test_is_not_stored(self, page: Client, carl: User) -> None:
        text = link_for(page, carl).split("/")[-2]
        assert text not in str(list(PasswordLink.objects.values()))
        assert text not in str(list(AuditEvent.objects.values()))


class TestOperators:
    def test_makes_another_one_and_takes_it_away(self, page: Client, carl: User) -> None:
        assert "carl is now an operator." in said(page, f"/people/{carl.pk}/operator/", is_operator="yes")
        assert client_of(carl).get("/people/").status_code == 200
        assert "carl is no longer an operator." in said(
            page, f"/people/{carl.pk}/operator/", is_operator="no"
        )
        assert client_of(carl).get("/people/").status_code == 403

    def test_the_only_one_stays(self, page: Client, operator: User) -> None:
        text = said(page, f"/people/{operator.pk}/operator/", is_operator="no")
        assert "olivia is the only operator; make somebody else operator first." in text
        assert page.get("/people/").status_code == 200

    def test_one_who_is_deactivated_does_not_count(self, page: Client, operator: User) -> None:
        User.objects.filter(pk=make_person("oscar").pk).update(is_operator=True, is_active=False)
        assert "only operator" in said(page, f"/people/{operator.pk}/operator/", is_operator="no")


class TestDeactivate:
    def test_ends_sessions_tokens_and_sign_in(self, page: Client, carl: User) -> None:
        browser, program = client_of(carl), api_client(carl)
        assert program.get("/api/v1/me/").status_code == 200
        assert "carl is deactivated" in said(page, f"/people/{carl.pk}/deactivate/", runs="finish")
        assert browser.get("/").headers["Location"].startswith("/sign-in/")
        assert program.get("/api/v1/me/").status_code == 401
        assert not Client().login(username="carl", password="the old one 123")

    def test_ends_invitations_links_and_own_channels(self, page: Client, carl: User) -> None:
        who = principal_of(carl)
        other = make_workspace("other")
        Invitation.objects.create(workspace=other, user=carl, role=Role.VIEWER)
        Invitation.objects.create(
            workspace=other, user=make_person("ines"), invited_by=carl, role=Role.VIEWER
        )
        channel = Channel.objects.create(
            workspace=who.workspace, user=carl, kind="webhook", name="mine", target="https://x.example/"
        )
        path = link_for(page, carl)
        page.post(f"/people/{carl.pk}/deactivate/")
        assert not Invitation.objects.exists()
        assert Client().get(path).status_code == 404
        channel.refresh_from_db()
        assert channel.paused_at is not None
        assert channel.last_error == "The account of this person was deactivated."

    @pytest.mark.parametrize(
        ("choice", "state"), [("finish", RunState.QUEUED), ("cancel", RunState.CANCELED)]
    )
    def test_asks_what_becomes_of_the_runs(
        self, page: Client, carl: User, choice: str, state: RunState
    ) -> None:
        run = queued(principal_of(carl))
        others = queued(principal_of(make_owner()))
        assert "Let them finish" in page.get(f"/people/{carl.pk}/").content.decode()
        page.post(f"/people/{carl.pk}/deactivate/", {"runs": choice})
        assert Run.objects.get(pk=run.pk).state == state
        assert Run.objects.get(pk=others.pk).state == RunState.QUEUED

    def test_the_only_owner_of_a_workspace_stays(self, page: Client) -> None:
        other = make_workspace("other")
        otto = make_person("otto", Role.OWNER, other)
        assert "otto is the only owner of Other; make somebody else" in said(
            page, f"/people/{otto.pk}/deactivate/"
        )
        otto.refresh_from_db()
        assert otto.is_active
        make_person("ines", Role.OWNER, other)
        assert "otto is deactivated" in said(page, f"/people/{otto.pk}/deactivate/")

    def test_nobody_deactivates_oneself(self, page: Client, operator: User) -> None:
        assert "You cannot deactivate yourself" in said(page, f"/people/{operator.pk}/deactivate/")

    def test_can_be_undone_and_revoked_tokens_stay_revoked(self, page: Client, carl: User) -> None:
        program = api_client(carl)
        page.post(f"/people/{carl.pk}/deactivate/")
        assert "carl can sign in again." in said(page, f"/people/{carl.pk}/activate/")
        assert Client().login(username="carl", password="the old one 123")
        assert program.get("/api/v1/me/").status_code == 401
        assert Membership.objects.filter(user=carl).exists()

    def test_no_link_for_a_deactivated_account(self, page: Client, carl: User) -> None:
        page.post(f"/people/{carl.pk}/deactivate/")
        assert "carl is deactivated; activate the account first." in said(page, f"/people/{carl.pk}/link/")
