"""Signing in with a second factor: codes of an app, recovery codes, resets by operators."""

from __future__ import annotations

import re
import time

import pyotp
import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from tests.people import PASSWORD, api_client, client_of, make_contributor, make_operator, make_workspace
from workspaces.authentication import confirmation
from workspaces.authentication.external.configuration import ExternalSignIn
from workspaces.authentication.factors import (
    proof,
    recovery,
    second_step,
    secret_box,
    setup_views,
    totp,
)
from workspaces.authentication.factors.secret_box import Unreadable
from workspaces.models import ApiToken, AuditEvent, Passkey, RecoveryCode, TotpDevice, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
CODES = re.compile(r"<li>([a-z2-9]{5}-[a-z2-9]{5}-[a-z2-9]{5})</li>")
SECRET = re.compile(r'data-secret>.*?data-text="([A-Z2-7]{32})"', re.DOTALL)


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.set_password(PASSWORD)
    user.save()
    return user


class App:
    """An authenticator app. Each call of `code` gives another code that is valid now."""

    def __init__(self, secret: str) -> None:
        self._totp = pyotp.TOTP(secret)
        self._step = int(time.time()) // 30 - 1

    def code(self) -> str:
        self._step += 1
        return self._totp.generate_otp(self._step - 1)


def set_up(user: User) -> tuple[App, list[str]]:
    """The person sets up an app on the page; also returns the recovery codes that it shows."""
    page = client_of(user)
    text = page.post("/settings/factors/app/", follow=True).content.decode()
    secret = SECRET.search(text)
    assert secret is not None, text
    assert "data:image/svg+xml" in text
    app = App(secret[1])
    answer = page.post("/settings/factors/app/confirm/", {"code": app.code()})
    codes = CODES.findall(answer.content.decode())
    assert len(codes) == recovery.COUNT
    assert answer.headers["Cache-Control"] == "no-store, no-transform"
    return app, codes


def first_step(name: str = "carl", **fields: str) -> Client:
    client = Client()
    answer = client.post("/sign-in/", {"username": name, "password": PASSWORD, **fields})
    assert answer.headers["Location"] == "/sign-in/second-step/"
    return client


def password_suffices() -> bool:
    answer = Client().post("/sign-in/", {"username": "carl", "password": PASSWORD})
    return answer.headers["Location"] == "/"


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


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


class TestConfirmation:
    def test_accepts_a_code_instead_of_the_password(self, carl: User) -> None:
        app, _ = set_up(carl)
        client = client_of(carl)
        session = client.session
        del session[confirmation.CONFIRMED_AT]
        session.save()
        page = client.post("/settings/tokens/", {"name": "laptop"}).content.decode()
        assert "Password, or code of your app" in page
        code = app.code()
        client.post("/settings/tokens/", {"name": "laptop", "confirm_password": code})
        assert ApiToken.objects.get().name == "laptop"

    def test_accepts_no_code_twice(self, carl: User) -> None:
        app, _ = set_up(carl)
        code = app.code()
        assert totp.accept_code(carl, code)
        client = client_of(carl)
        session = client.session
        del session[confirmation.CONFIRMED_AT]
        session.save()
        answer = client.post("/settings/tokens/", {"name": "laptop", "confirm_password": code})
        assert "neither your password nor a new code" in answer.content.decode()
        assert not ApiToken.objects.exists()


class TestPasskeys:
    """What a browser answers rightly is tested in Chromium."""

    def test_are_at_most_twenty(self, carl: User) -> None:
        Passkey.objects.bulk_create(
            Passkey(user=carl, name="x", credential_id=f"{number:04}", public_key="AAAA")
            for number in range(setup_views.MAX_PASSKEYS)
        )
        page = client_of(carl)
        page.post("/settings/factors/passkeys/")
        answer = page.post("/settings/factors/passkeys/add/", {"name": "one more", "credential": "{}"})
        assert "You have 20 passkeys; remove one first." in answer.content.decode()

    @pytest.mark.parametrize("credential", ["{}", "x", "x" * 20_001])
    def test_are_not_made_of_a_wrong_answer(self, carl: User, credential: str) -> None:
        page = client_of(carl)
        page.post("/settings/factors/passkeys/")
        page.post("/settings/factors/passkeys/add/", {"name": "laptop", "credential": credential})
        assert not Passkey.objects.exists()

    def test_that_are_the_last_factor_take_the_recovery_codes_with_them(self, carl: User) -> None:
        passkey = Passkey.objects.create(user=carl, name="laptop", credential_id="AAAA", public_key="AAAA")
        recovery.new_codes(carl)
        client_of(carl).post(f"/settings/factors/passkeys/{passkey.pk}/remove/")
        assert not RecoveryCode.objects.exists()
        assert AuditEvent.objects.filter(verb="factor.removed").count() == 1

    def test_of_a_hub_with_an_ip_address_are_not_offered(self, carl: User, settings: Settings) -> None:
        settings.PUBLIC_URL = "https://192.0.2.1"
        text = client_of(carl).get("/settings/factors/").content.decode()
        assert "Browsers make passkeys for host names only, and this hub&#x27;s address is 192.0.2.1" in text
        assert client_of(carl).post("/settings/factors/passkeys/").status_code == 302


class TestOperators:
    def test_take_a_lost_factor_away(self, carl: User) -> None:
        set_up(carl)
        page = client_of(make_operator())
        assert "app with codes" in page.get(f"/people/{carl.pk}/").content.decode()
        page.post(f"/people/{carl.pk}/factors/reset/")
        assert not proof.factors_of(carl)
        assert password_suffices()

    def test_do_so_by_a_command(self, carl: User, capsys: pytest.CaptureFixture[str]) -> None:
        set_up(carl)
        call_command("person", "reset-factors", "carl")
        assert "carl signs in without second factor." in capsys.readouterr().err
        call_command("person", "reset-factors", "carl")
        assert "carl has no second factor." in capsys.readouterr().err

    def test_need_one_themselves_where_the_installation_says_so(self, carl: User, settings: Settings) -> None:
        operator = make_operator()
        settings.SIGN_IN = ExternalSignIn(operators_need_second_factor=True)
        answer = client_of(operator).get("/people/")
        assert answer.status_code == 403
        assert "Set one up under Settings, Second factor." in answer.content.decode()
        assert api_client(operator).post("/api/v1/workspaces/", {"name": "X"}).status_code == 403
        other = make_workspace("other")
        AuditEvent.objects.create(actor="x", verb="run.pin", subject="elsewhere", workspace=other)
        assert "elsewhere" not in client_of(operator).get("/audit/").content.decode(), "as an owner only"
        set_up(operator)
        assert client_of(operator).get("/people/").status_code == 200
        assert "elsewhere" in client_of(operator).get("/audit/").content.decode()
