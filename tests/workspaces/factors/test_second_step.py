"""Signing in with a second factor: codes of an app, and recovery codes."""

from __future__ import annotations

import time

import pytest
from django.test import Client
from pytest_django import Settings

from tests.people import client_of
from tests.workspaces.factors.authenticator import CODES, first_step, is_in, password_suffices, set_up
from workspaces.authentication.factors import recovery, second_step, secret_box, totp
from workspaces.authentication.factors.secret_box import Unreadable
from workspaces.models import AuditEvent, Passkey, RecoveryCode, TotpDevice, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


class TestApp:
    def test_its_code_is_asked_for_after_the_password(self, carl: User) -> None:
        app, _ = set_up(carl)
        client = first_step(next="/runs/")
        assert not is_in(client)
        answer = client.post("/sign-in/second-step/", {"code": app.code()})
        assert answer.headers["Location"] == "/runs/"
        assert is_in(client)
        event = AuditEvent.objects.filter(verb="person.signed_in").order_by("-pk")[0]
        assert event.detail["way"] == "password and second factor"

    def test_a_code_cannot_be_used_twice(self, carl: User) -> None:
        app, _ = set_up(carl)
        code = app.code()
        first_step().post("/sign-in/second-step/", {"code": code})
        client = first_step()
        assert "used already" in client.post("/sign-in/second-step/", {"code": code}).content.decode()
        assert not is_in(client)

    def test_an_earlier_code_than_the_last_one_is_not_accepted(self, carl: User) -> None:
        app, _ = set_up(carl)
        earlier, later = app.code(), app.code()
        assert totp.accept_code(carl, later)
        assert not totp.accept_code(carl, earlier)

    def test_counts_only_once_a_code_is_confirmed(self, carl: User) -> None:
        page = client_of(carl)
        page.post("/settings/factors/app/")
        answer = page.post("/settings/factors/app/confirm/", {"code": "000000"})
        assert answer.status_code == 400
        assert password_suffices()

    def test_beginning_again_leaves_a_confirmed_app_alone(self, carl: User) -> None:
        app, _ = set_up(carl)
        client_of(carl).post("/settings/factors/app/")
        assert totp.accept_code(carl, app.code())

    def test_without_it_nothing_more_is_asked_and_its_recovery_codes_are_gone(self, carl: User) -> None:
        set_up(carl)
        client_of(carl).post("/settings/factors/app/remove/")
        assert password_suffices()
        assert not RecoveryCode.objects.exists()
        verbs = AuditEvent.objects.filter(verb__startswith="factor.").order_by("pk")
        assert [event.verb for event in verbs] == ["factor.added", "factor.codes_created", "factor.removed"]

    def test_its_secret_is_not_in_the_database(self, carl: User) -> None:
        app, _ = set_up(carl)
        stored = TotpDevice.objects.get().sealed_secret
        assert app._totp.secret not in stored
        assert secret_box.unseal(stored, f"totp {carl.pk}") == app._totp.secret
        with pytest.raises(Unreadable):
            secret_box.unseal(stored, "totp 0")

    def test_a_row_of_another_person_or_of_another_key_lets_nobody_in(
        self, carl: User, settings: Settings
    ) -> None:
        app, _ = set_up(carl)
        settings.SECRET_KEY = "another"
        assert not totp.accept_code(carl, app.code())


class TestSecondStep:
    def test_is_nobodys_session(self, carl: User) -> None:
        set_up(carl)
        client = first_step()
        for path in ("/", "/settings/", "/api/v1/me/"):
            assert client.get(path).status_code in (302, 401), path

    def test_without_the_first_one_leads_to_the_sign_in_page(self) -> None:
        for answer in (
            Client().get("/sign-in/second-step/"),
            Client().post("/sign-in/second-step/", {"code": "1"}),
        ):
            assert answer.headers["Location"] == "/sign-in/"

    def test_comes_too_late_after_ten_minutes(self, carl: User) -> None:
        app, _ = set_up(carl)
        client = first_step()
        session = client.session
        session[second_step.PENDING] = {**session[second_step.PENDING], "at": time.time() - 601}
        session.save()
        client.post("/sign-in/second-step/", {"code": app.code()})
        assert not is_in(client)

    def test_is_void_after_a_new_password_or_a_deactivation(self, carl: User) -> None:
        app, _ = set_up(carl)
        first, second = first_step(), first_step()
        User.objects.filter(pk=carl.pk).update(is_active=False)
        first.post("/sign-in/second-step/", {"code": app.code()})
        User.objects.filter(pk=carl.pk).update(is_active=True)
        carl.set_password("another good password")
        carl.save()
        second.post("/sign-in/second-step/", {"code": app.code()})
        assert not is_in(first)
        assert not is_in(second)

    def test_is_slowed_down_for_the_person_from_all_addresses_together(self, carl: User) -> None:
        app, _ = set_up(carl)
        clients = [first_step(REMOTE_ADDR="x") for _ in range(6)]
        statuses = []
        for number, client in enumerate(clients):
            answer = client.post("/sign-in/second-step/", {"code": "000000"}, REMOTE_ADDR=f"10.0.{number}.1")
            statuses.append(answer.status_code)
        assert statuses == [200] * 5 + [429]
        answer = clients[0].post("/sign-in/second-step/", {"code": app.code()}, REMOTE_ADDR="10.9.9.9")
        assert answer.status_code == 429, "also with the right code"
        assert AuditEvent.objects.filter(verb="person.sign_in_failed").exists()

    @pytest.mark.parametrize("code", ["", "x" * 41, "12345", "a\x00b", "１２３４５６"])
    def test_refuses_what_is_no_code(self, carl: User, code: str) -> None:
        set_up(carl)
        client = first_step()
        assert client.post("/sign-in/second-step/", {"code": code}).status_code == 200
        assert not is_in(client)

    @pytest.mark.parametrize("credential", ["{}", "[]", "null", '{"id": "\\u0000"}', "x", "[" * 5000])
    def test_refuses_what_is_no_answer_of_a_passkey(self, carl: User, credential: str) -> None:
        Passkey.objects.create(user=carl, name="laptop", credential_id="AAAA", public_key="AAAA")
        client = first_step()
        client.get("/sign-in/second-step/")
        answer = client.post("/sign-in/second-step/", {"credential": credential})
        assert "This passkey was not accepted." in answer.content.decode()
        assert not is_in(client)


class TestRecoveryCodes:
    def test_each_replaces_the_app_once(self, carl: User) -> None:
        _, codes = set_up(carl)
        client = first_step()
        client.post("/sign-in/second-step/", {"code": codes[0].upper().replace("-", " ")})
        assert is_in(client)
        again = first_step()
        again.post("/sign-in/second-step/", {"code": codes[0]})
        assert not is_in(again)
        assert AuditEvent.objects.get(verb="factor.code_used").detail == {"left": 9}

    def test_new_ones_replace_the_old_ones(self, carl: User) -> None:
        _, codes = set_up(carl)
        answer = client_of(carl).post("/settings/factors/recovery/")
        assert len(CODES.findall(answer.content.decode())) == 10
        assert not recovery.use_code(carl, codes[0])

    def test_are_stored_as_hashes(self, carl: User) -> None:
        _, codes = set_up(carl)
        assert codes[0] not in str(list(RecoveryCode.objects.values_list()))

    def test_without_a_factor_there_are_none(self, carl: User) -> None:
        client_of(carl).post("/settings/factors/recovery/")
        assert not RecoveryCode.objects.exists()
