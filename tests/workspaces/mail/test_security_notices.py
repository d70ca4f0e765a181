"""People are told by mail when a way in which they sign in has changed."""

from __future__ import annotations

import pyotp
import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.people import PASSWORD, client_of, make_contributor, make_operator
from tests.workspaces.mail.mailbox import Mailbox
from workspaces.administration import password_links
from workspaces.authentication.external import accounts, disconnection
from workspaces.authentication.external.accounts import ExternalIdentity
from workspaces.authentication.factors import recovery, removal, totp
from workspaces.mail import outgoing_mails
from workspaces.models import ExternalAccount, OutgoingMail, Passkey, User
from workspaces.security_notices.notices import WORDS, notify_person
from workspaces.states import SignInChange

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
ADDRESS = "carl@example.org"
NEW_PASSWORD = "another fine staple of horses"


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.email = ADDRESS
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def page(carl: User) -> Client:
    return client_of(carl)


def sent(mailbox: Mailbox, about: str) -> str:
    outgoing_mails.tick(timezone.now())
    return str(mailbox.letter_to(ADDRESS, about).get_content())


class TestNotice:
    def test_of_an_app_and_its_recovery_codes(self, page: Client, carl: User, mailbox: Mailbox) -> None:
        totp.begin_setup(carl)
        secret = totp.setup_secret(carl) or ""
        page.post("/settings/factors/app/confirm/", {"code": pyotp.TOTP(secret).now()})
        assert "this changed for carl: an app with codes was added." in sent(mailbox, "app with codes")
        assert "earlier ones no longer work" in sent(mailbox, "recovery codes")
        page.post("/settings/factors/app/remove/")
        assert "the app with codes was removed" in sent(mailbox, "removed")

    def test_of_a_passkey_that_is_removed_names_it(self, page: Client, carl: User, mailbox: Mailbox) -> None:
        passkey = Passkey.objects.create(user=carl, name="laptop", credential_id="x", public_key="x")
        page.post(f"/settings/factors/passkeys/{passkey.pk}/remove/")
        assert "a passkey was removed (laptop)." in sent(mailbox, "passkey")

    def test_of_factors_that_an_operator_takes_away(self, carl: User, mailbox: Mailbox) -> None:
        Passkey.objects.create(user=carl, name="laptop", credential_id="x", public_key="x")
        removal.reset_factors("test", carl)
        assert "the second factor was taken away (by an operator)." in sent(mailbox, "second factor")

    def test_of_a_new_password(self, page: Client, carl: User, mailbox: Mailbox) -> None:
        passwords = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        assert page.post("/settings/password/", passwords).status_code == 302
        assert "the password was changed." in sent(mailbox, "password")
        link, _ = password_links.create_link("test", carl)
        password_links.use_link(link, PASSWORD)
        assert "(with a link for a new password)" in sent(mailbox, "password")

    def test_of_an_account_that_is_connected_and_disconnected(self, carl: User, mailbox: Mailbox) -> None:
        accounts.connect(carl, ExternalIdentity("https://id.example.org", "1", "OIDC"))
        assert "was connected (OIDC)." in sent(mailbox, "connected")
        disconnection.disconnect(make_operator(), ExternalAccount.objects.get())
        assert "was disconnected (https://id.example.org, by an operator)." in sent(mailbox, "disconnected")

    def test_names_the_remedy(self, carl: User, mailbox: Mailbox, settings: Settings) -> None:
        recovery.new_codes(carl)
        text = sent(mailbox, "recovery codes")
        assert f"{settings.PUBLIC_URL}/settings/" in text
        assert "ask an operator of the installation" in text

    @pytest.mark.parametrize("change", SignInChange)
    def test_is_short_and_one_line_in_its_subject(
        self, carl: User, mailbox: Mailbox, change: SignInChange
    ) -> None:
        notify_person(carl, change, "a\nb" * 200)
        sent(mailbox, "")
        (letter,) = mailbox.letters
        assert letter["Subject"].lower() == f"trainhub: {WORDS[change].partition(',')[0]}"
        assert len(OutgoingMail.objects.get().detail) == 200

    def test_that_the_server_does_not_take_fails_no_change(
        self, page: Client, carl: User, mailbox: Mailbox
    ) -> None:
        mailbox.is_refusing = True
        passkey = Passkey.objects.create(user=carl, name="laptop", credential_id="x", public_key="x")
        assert page.post(f"/settings/factors/passkeys/{passkey.pk}/remove/").status_code == 302
        assert outgoing_mails.tick(timezone.now()) == 0
        assert not Passkey.objects.exists()
        assert OutgoingMail.objects.get().state == "waiting"


class TestNobodyIsTold:
    def test_on_a_hub_without_mail(self, carl: User) -> None:
        recovery.new_codes(carl)
        assert not OutgoingMail.objects.exists()

    @pytest.mark.usefixtures("mailbox")
    def test_without_a_confirmed_address(self, carl: User) -> None:
        User.objects.filter(pk=carl.pk).update(email="")
        recovery.new_codes(carl)
        assert not OutgoingMail.objects.exists()
