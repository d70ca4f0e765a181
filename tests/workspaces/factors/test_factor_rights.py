"""What a second factor confirms, and what operators may do with it and need it for."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from pytest_django import Settings

from tests.people import api_client, client_of, make_operator, make_workspace
from tests.workspaces.factors.authenticator import password_suffices, set_up
from workspaces.authentication import confirmation
from workspaces.authentication.external.configuration import ExternalSignIn
from workspaces.authentication.factors import proof, recovery, setup_views, totp
from workspaces.models import ApiToken, AuditEvent, Passkey, RecoveryCode, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


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
