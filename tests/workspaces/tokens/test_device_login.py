"""A program without a browser signs in: two codes, a page, one token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.api.contract import ApiClient
from tests.people import client_of, make_contributor, make_owner, make_viewer, make_workspace
from workspaces import tokens
from workspaces.authentication import confirmation
from workspaces.device_login import device_requests
from workspaces.models import ApiToken, AuditEvent, DeviceLogin, Membership, User

pytestmark = pytest.mark.django_db
START, TOKEN = "/api/v1/device-login/", "/api/v1/device-login/token/"


@pytest.fixture
def program() -> Client:
    return ApiClient()


def begin(program: Client, **changed: object) -> dict[str, Any]:
    body = {"name": "laptop of carl", "scope": "submit", **changed}
    answer = program.post(START, body, content_type="application/json")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    return dict(answer.json())


def ask(program: Client, codes: dict[str, Any]) -> Any:
    DeviceLogin.objects.update(polled_at=None)
    return program.post(TOKEN, {"device_code": codes["device_code"]}, content_type="application/json")


def answer(browser: Client, codes: dict[str, Any], what: str = "allow") -> Any:
    return browser.post("/device/answer/", {"code": codes["user_code"], "answer": what})


class TestAllowed:
    def test_the_program_gets_the_token_once_and_it_works(self, program: Client) -> None:
        codes = begin(program)
        carl = client_of(make_contributor())
        page = carl.get(codes["verification_uri_complete"].removeprefix("http://testserver")).content.decode()
        assert all(
            words in page for words in ("laptop of carl", codes["user_code"], "submit runs", "127.0.0.1")
        )
        assert (ask(program, codes).status_code, ask(program, codes).json()["error"]) == (
            400,
            "authorization_pending",
        )
        assert answer(carl, codes).status_code == 302
        got = ask(program, codes).json()
        assert (got["scope"], got["workspace"], got["token_type"]) == ("submit", "default", "Bearer")
        assert got["expires_in"] == 90 * 86400
        who = tokens.authenticate(got["access_token"])
        assert who is not None
        assert who.user == make_contributor()
        assert ask(program, codes).json()["error"] == "invalid_grant"
        assert ApiToken.objects.get().name == "laptop of carl"
        event = AuditEvent.objects.get(verb="token.created")
        assert event.detail == {"scope": "submit", "device_address": "127.0.0.1"}

    def test_no_row_has_a_code_of_the_program_or_a_token(self, program: Client) -> None:
        codes = begin(program)
        assert codes["device_code"] not in str(DeviceLogin.objects.values())
        answer(client_of(make_contributor()), codes)
        assert not ApiToken.objects.exists()

    def test_the_code_may_be_typed_as_people_do(self, program: Client) -> None:
        code = begin(program)["user_code"]
        page = client_of(make_contributor()).get("/device/", {"code": f" {code.lower().replace('-', ' ')} "})
        assert "laptop of carl" in page.content.decode()


class TestRefused:
    def test_no_password_is_asked_for(self, program: Client) -> None:
        codes, carl = begin(program), client_of(make_contributor())
        session = carl.session
        session[confirmation.CONFIRMED_AT] -= confirmation.CONFIRMED_FOR_S + 1
        session.save()
        assert "Confirm" in answer(carl, codes).content.decode()
        assert answer(carl, codes, "refuse").status_code == 302
        assert ask(program, codes).json()["error"] == "access_denied"

    def test_the_program_learns_it_and_gets_nothing(self, program: Client) -> None:
        codes = begin(program)
        assert answer(client_of(make_viewer()), codes, "refuse").status_code == 302
        assert ask(program, codes).json()["error"] == "access_denied"
        assert not ApiToken.objects.exists()
        assert AuditEvent.objects.filter(verb="token.device_refused", actor="vera").exists()

    def test_nobody_can_answer_twice(self, program: Client) -> None:
        codes = begin(program)
        answer(client_of(make_contributor()), codes, "refuse")
        assert answer(client_of(make_owner()), codes).status_code == 400

    def test_after_ten_minutes_nobody_can_allow_it(self, program: Client) -> None:
        codes = begin(program)
        DeviceLogin.objects.update(expires_at=timezone.now())
        assert answer(client_of(make_contributor()), codes).status_code == 400
        assert ask(program, codes).json()["error"] == "expired_token"

    def test_a_person_who_has_left_meanwhile_gives_no_token(self, program: Client) -> None:
        for leave in (
            lambda: User.objects.update(is_active=False),
            lambda: Membership.objects.all().delete(),
        ):
            codes = begin(program)
            User.objects.update(is_active=True)
            answer(client_of(make_contributor()), codes)
            leave()
            assert ask(program, codes).json()["error"] == "access_denied"
        assert not ApiToken.objects.exists()


class TestLimits:
    def test_who_asks_too_often_is_told_to_slow_down(self, program: Client) -> None:
        codes = begin(program)
        body = {"device_code": codes["device_code"]}
        errors = [
            program.post(TOKEN, body, content_type="application/json").json()["error"] for _ in range(3)
        ]
        assert errors == ["authorization_pending", "slow_down", "slow_down"]
        assert DeviceLogin.objects.get().interval_s == 15

    def test_one_address_has_room_for_so_many(self, program: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device_requests, "MAX_PENDING_PER_ADDRESS", 2)
        begin(program)
        begin(program)
        full = program.post(START, {"name": "x"}, content_type="application/json")
        assert full.status_code == 429
        DeviceLogin.objects.update(expires_at=timezone.now() - timedelta(hours=1))
        begin(program)
        device_requests.delete_expired()
        assert DeviceLogin.objects.count() == 1

    def test_who_guesses_codes_has_to_wait(self) -> None:
        carl = client_of(make_contributor())
        statuses = [carl.get("/device/", {"code": f"BCDF-GHJ{letter}"}).status_code for letter in "BCDFGHJ"]
        assert statuses == [404] * 5 + [429] * 2

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "name"),
            ({"name": ""}, "name"),
            ({"name": "a\0b"}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"name": "x", "scope": "all"}, "scope"),
        ],
    )
    def test_what_is_wrong_names_its_field(self, program: Client, body: dict[str, str], field: str) -> None:
        refused = program.post(START, body, content_type="application/json")
        assert refused.status_code == 400
        assert [error["field"] for error in refused.json()["errors"]] == [field]

    def test_an_unknown_code_is_told_on_the_page_and_to_the_program(self, program: Client) -> None:
        page = client_of(make_contributor()).get("/device/", {"code": "nonsense"})
        assert (page.status_code, "No program waits with this code" in page.content.decode()) == (404, True)
        answered = program.post(TOKEN, {"device_code": "thd_x"}, content_type="application/json")
        assert answered.json()["error"] == "invalid_grant"

    def test_the_page_acts_in_the_workspace_of_the_session(self, program: Client) -> None:
        make_workspace()
        assert (
            "in Default"
            in client_of(make_contributor())
            .get("/device/", {"code": begin(program)["user_code"]})
            .content.decode()
        )
