"""S15: a session in other hands changes tokens, machines, people or secrets; the password is asked again on
these pages."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from clusters.models import Cluster, JoinToken
from tests.people import PASSWORD, client_of, make_operator, make_person, make_workspace
from workspaces.authentication import confirmation
from workspaces.models import ApiToken, Channel, Invitation, Membership, User
from workspaces.states import Role

pytestmark = pytest.mark.django_db
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
ACTION = re.compile(
    r'<form method="post" action="([^"]+)">\s*<input type="hidden" name="csrfmiddlewaretoken"'
)
CHANNEL = {
    "kind": "webhook",
    "name": 'o"ps',
    "target": "https://x.example/<s3cret>",
    "events": ["run.failed", "run.completed"],
}


@pytest.fixture
def person() -> User:
    """An operator and owner with a password of her own."""
    user = make_operator()
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def old(person: User) -> Client:
    """Her session, in which the password was typed more than 10 minutes ago."""
    client = client_of(person)
    session = client.session
    session[confirmation.CONFIRMED_AT] -= 10 * 60 + 1
    session.save()
    return client


def answered(client: Client, page: str, password: str = PASSWORD) -> object:
    """What the browser sends when the person types the password into the page that asks for it."""
    kept: dict[str, list[str]] = {}
    for name, value in HIDDEN.findall(page):
        kept.setdefault(name, []).append(unescape(value))
    action = next(found for found in ACTION.findall(page) if found != "/sign-out/")
    return client.post(unescape(action), {**kept, "confirm_password": password})


class TestChanges:
    @pytest.mark.parametrize(
        ("path", "form"),
        [
            ("/settings/tokens/", {"name": "laptop"}),
            ("/settings/tokens/1/revoke/", {}),
            ("/device/answer/", {"code": "BCDF-GHJK", "answer": "allow"}),
            ("/settings/members/", {"username": "nora", "role": "owner"}),
            ("/settings/members/1/role/", {"role": "viewer"}),
            ("/settings/members/1/remove/", {}),
            ("/settings/members/invitations/1/withdraw/", {}),
            ("/settings/notifications/add/own/", CHANNEL),
            ("/settings/notifications/1/", CHANNEL),
            ("/settings/notifications/1/delete/", {}),
            ("/clusters/add/", {"cluster": "lab"}),
            ("/clusters/add-cluster/", {"name": "lab"}),
            ("/clusters/lab/edit/", {}),
            ("/clusters/hpc/unix-accounts/", {"person": "nora", "account": "ada"}),
            ("/clusters/hpc/unix-accounts/remove/", {"person": "nora"}),
            ("/nodes/alpha/revoke/", {}),
        ],
    )
    def test_ask_for_the_password_first(self, old: Client, path: str, form: dict[str, object]) -> None:
        before = [
            list(model.objects.values())
            for model in (ApiToken, Membership, Channel, JoinToken, Cluster, User)
        ]
        answer = old.post(path, form)
        assert answer.status_code == 403
        assert "Confirm your password" in answer.content.decode()
        assert answer.headers["Cache-Control"] == "no-store, no-transform"
        assert [
            list(model.objects.values())
            for model in (ApiToken, Membership, Channel, JoinToken, Cluster, User)
        ] == before

    def test_an_invitation_is_accepted_after_the_password_alone(self, old: Client, person: User) -> None:
        invitation = Invitation.objects.create(workspace=make_workspace("lab"), user=person, role="viewer")
        response = old.post(f"/invitations/{invitation.pk}/accept/")
        assert response.status_code == 403
        assert not Membership.objects.filter(workspace=invitation.workspace).exists()
        answered(old, response.content.decode())
        assert Membership.objects.get(workspace=invitation.workspace).user == person

    @pytest.mark.parametrize(
        ("referer", "back"),
        [
            ("http://testserver/clusters/lab/?tab=nodes", "/clusters/lab/?tab=nodes"),
            ("http://testserver/clusters/lab/", "/clusters/lab/"),
            ("http://testserver", "/"),
            ("http://evil.example/clusters/lab/", "/settings/"),
        ],
    )
    def test_the_way_back_leads_to_the_page_before_if_it_is_one_of_ours(
        self, old: Client, referer: str, back: str
    ) -> None:
        response = old.post("/settings/tokens/", {"name": "laptop"}, headers={"referer": referer})
        assert f'href="{back}"' in response.content.decode()

    def test_looking_at_these_pages_asks_for_nothing(self, old: Client) -> None:
        for path in (
            "/settings/",
            "/settings/notifications/add/own/",
            "/clusters/add/",
            "/clusters/add-cluster/",
        ):
            assert old.get(path).status_code == 200

    def test_a_session_of_the_last_10_minutes_is_not_asked(self, person: User) -> None:
        assert client_of(person).post("/settings/tokens/", {"name": "laptop"}).status_code == 200
        assert ApiToken.objects.exists()

    @pytest.mark.parametrize("value", [None, "1e99", 9e99, True])
    def test_nothing_else_in_a_session_counts_as_a_confirmation(self, value: object) -> None:
        assert not confirmation.is_confirmed({confirmation.CONFIRMED_AT: value})

    def test_by_the_api_with_a_session_need_it_too(self, old: Client) -> None:
        """Whoever holds the cookie can read the CSRF token from any page, and use the API by session."""
        for path in ("/api/v1/notification-channels/", "/api/v1/nodes/invitations/", "/api/v1/clusters/"):
            answer = old.post(path, {}, content_type="application/json")
            assert answer.status_code == 403
            assert "/settings/confirm/" in answer.json()["detail"]
        assert old.get("/api/v1/notification-channels/").status_code == 200

    def test_by_the_api_are_made_once_it_was_confirmed_on_the_page_that_the_refusal_names(
        self, old: Client
    ) -> None:
        assert old.get("/settings/confirm/?next=/settings/").status_code == 200
        assert (
            old.post("/settings/confirm/?next=/settings/", {"confirm_password": PASSWORD}).headers["Location"]
            == "/settings/"
        )
        sent = {"name": "mine", "target": "https://x.example/"}
        assert (
            old.post("/api/v1/notification-channels/", sent, content_type="application/json").status_code
            == 201
        )

    def test_the_confirmation_leads_to_no_other_site(self, old: Client) -> None:
        answer = old.post("/settings/confirm/?next=//evil.example/", {"confirm_password": PASSWORD})
        assert answer.headers["Location"] == "/settings/"


class TestConfirming:
    def test_does_at_once_what_was_asked_and_loses_nothing_that_was_typed(self, old: Client) -> None:
        page = old.post("/settings/notifications/add/own/", CHANNEL).content.decode()
        answered(old, page)
        made = Channel.objects.get()
        assert (made.name, made.target) == (CHANNEL["name"], CHANNEL["target"])
        assert sorted(made.events) == sorted(CHANNEL["events"])

    def test_is_asked_again_after_a_wrong_password_and_still_loses_nothing(self, old: Client) -> None:
        page = old.post("/settings/tokens/", {"name": "laptop", "scope": "read"}).content.decode()
        again = answered(old, page, "wrong")
        assert again.status_code == 403  # type: ignore[attr-defined]
        assert "This is not your password" in again.content.decode()  # type: ignore[attr-defined]
        answered(old, again.content.decode())  # type: ignore[attr-defined]
        assert ApiToken.objects.get().scope == "read"

    def test_holds_for_10_minutes(self, old: Client) -> None:
        answered(old, old.post("/settings/tokens/", {"name": "laptop"}).content.decode())
        assert old.post("/settings/tokens/", {"name": "desktop"}).status_code == 200
        assert ApiToken.objects.count() == 2

    def test_makes_a_stolen_cookie_worthless(self, old: Client, settings: Settings) -> None:
        thief = Client()
        thief.cookies[settings.SESSION_COOKIE_NAME] = old.cookies[settings.SESSION_COOKIE_NAME].value
        assert thief.get("/settings/").status_code == 200
        answered(old, old.post("/settings/tokens/", {"name": "laptop"}).content.decode())
        assert thief.get("/settings/").status_code == 302
        assert old.get("/settings/").status_code == 200

    def test_is_slowed_down_like_signing_in(self, old: Client) -> None:
        page = old.post("/settings/tokens/", {"name": "laptop"}).content.decode()
        for _ in range(5):
            answered(old, page, "wrong")
        answer = answered(old, page)
        assert answer.status_code == 429  # type: ignore[attr-defined]
        assert int(answer.headers["Retry-After"]) > 0  # type: ignore[attr-defined]
        assert not ApiToken.objects.exists()

    def test_never_reaches_the_view_with_the_password(self, old: Client) -> None:
        page = old.post("/settings/tokens/", {"name": ""}).content.decode()
        shown = answered(old, page).content.decode()  # type: ignore[attr-defined]
        assert PASSWORD not in shown
        assert "This field is required" in shown

    def test_needs_the_csrf_token(self, person: User) -> None:
        client = client_of(person, csrf=True)
        assert client.post("/settings/confirm/", {"confirm_password": PASSWORD}).status_code == 403

    def test_is_not_needed_by_a_token(self, person: User) -> None:
        ApiToken.objects.all().delete()
        make_person("olivia", Role.OWNER)
        client = client_of(person)
        client.post("/settings/tokens/", {"name": "laptop", "expires": "none"})
        assert ApiToken.objects.filter(created_at__gt=timezone.now() - timedelta(minutes=1)).exists()
