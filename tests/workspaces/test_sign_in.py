from __future__ import annotations

import pytest
from django.conf import settings
from django.http.response import HttpResponseBase
from django.test import Client

from tests.people import PASSWORD, client_of
from workspaces.models import User

pytestmark = pytest.mark.django_db


def with_password(user: User) -> User:
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(client: Client, name: str, password: str, **query: str) -> HttpResponseBase:
    return client.post("/sign-in/", {"username": name, "password": password, **query})


class TestSignIn:
    def test_leads_a_member_to_the_dashboard(self, viewer: User) -> None:
        with_password(viewer)
        assert sign_in(Client(), "vera", PASSWORD).headers["Location"] == "/"

    def test_leads_back_to_where_one_wanted_to_go(self, viewer: User) -> None:
        with_password(viewer)
        assert sign_in(Client(), "vera", PASSWORD, next="/settings/").headers["Location"] == "/settings/"

    def test_never_leads_to_another_site(self, viewer: User) -> None:
        with_password(viewer)
        assert sign_in(Client(), "vera", PASSWORD, next="//evil.example/").headers["Location"] == "/"

    def test_refuses_a_wrong_password_in_a_sentence(self, viewer: User) -> None:
        with_password(viewer)
        answer = sign_in(Client(), "vera", "wrong")
        assert b"The user name or the password is wrong." in answer.getvalue()

    def test_tells_a_stranger_what_to_do(self, stranger: User) -> None:
        with_password(stranger)
        client = Client()
        assert b"Ask an owner to add you" in sign_in(client, "stan", PASSWORD).getvalue()
        assert settings.SESSION_COOKIE_NAME not in client.cookies

    def test_needs_the_csrf_token(self, viewer: User) -> None:
        with_password(viewer)
        assert sign_in(Client(enforce_csrf_checks=True), "vera", PASSWORD).status_code == 403

    def test_reloads_a_page_whose_session_ended_instead_of_filling_it_with_a_form(self) -> None:
        answer = client_of(None).get("/settings/", headers={"HX-Request": "true"}, follow=True)
        assert answer.headers["HX-Refresh"] == "true"

    def test_out_ends_the_session_by_post_only(self, viewer: User) -> None:
        client = client_of(viewer)
        assert client.get("/sign-out/").status_code == 405
        assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
        assert client.get("/settings/").status_code == 302

    def test_says_when_to_try_again_after_five_failures(self, viewer: User) -> None:
        with_password(viewer)
        for _ in range(5):
            assert sign_in(Client(), "vera", "wrong").status_code == 200
        answer = sign_in(Client(), "vera", PASSWORD)
        assert answer.status_code == 429
        assert answer.headers["Retry-After"] == "5"
        assert b"Too many failed attempts. Wait 5 seconds, then try again." in answer.getvalue()

    def test_without_a_password_forgets_no_failures(self, viewer: User) -> None:
        with_password(viewer)
        for _ in range(5):
            sign_in(Client(), "vera", "wrong")
            sign_in(Client(), "vera", "")
        assert sign_in(Client(), "vera", PASSWORD).status_code == 429
