from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import cache
from django.http.response import HttpResponseBase
from django.test import Client

from tests.people import PASSWORD, client_of
from workspaces import brake
from workspaces.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_failures_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


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


class TestBrake:
    def test_makes_even_the_right_password_wait_after_five_failures(self, viewer: User) -> None:
        with_password(viewer)
        for _ in range(5):
            sign_in(Client(), "vera", "wrong")
        answer = sign_in(Client(), "vera", PASSWORD)
        assert b"Too many failed attempts. Wait 5 seconds, then try again." in answer.getvalue()

    def test_leaves_other_people_and_other_addresses_alone(self) -> None:
        for _ in range(9):
            brake.failed("vera", "10.0.0.1", now=1000)
        assert brake.wait_s("vera", "10.0.0.1", now=1000) > 0
        assert brake.wait_s("carl", "10.0.0.1", now=1000) == 0
        assert brake.wait_s("vera", "10.0.0.2", now=1000) == 0

    def test_waits_grow_and_end_by_themselves(self) -> None:
        waits = []
        for _ in range(12):
            brake.failed("vera", "10.0.0.1", now=1000)
            waits.append(brake.wait_s("vera", "10.0.0.1", now=1000))
        assert waits == [0, 0, 0, 0, 5, 10, 20, 40, 60, 60, 60, 60]
        assert brake.wait_s("vera", "10.0.0.1", now=1060) == 0

    def test_is_released_by_success(self) -> None:
        for _ in range(6):
            brake.failed("vera", "10.0.0.1", now=1000)
        brake.succeeded("vera", "10.0.0.1")
        assert brake.wait_s("vera", "10.0.0.1", now=1000) == 0

    def test_holds_an_address_that_tries_many_names_though_one_of_them_succeeds(self) -> None:
        for number in range(50):
            brake.failed(f"person{number}", "10.0.0.1", now=1000)
        brake.succeeded("mallory", "10.0.0.1")
        assert brake.wait_s("olivia", "10.0.0.1", now=1000) > 0
