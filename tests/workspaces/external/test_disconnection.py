"""An account at a provider can be disconnected, by its person or an operator, and nobody locks themselves
out."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from tests.people import PASSWORD, client_of, make_contributor, make_operator, make_person
from workspaces.authentication.external.accounts import (
    ExternalIdentity,
    SignInRefused,
    connect,
    sign_in_person,
)
from workspaces.authentication.external.configuration import ExternalSignIn, OidcProvider, UserHeader
from workspaces.authentication.external.disconnection import DisconnectRefused, disconnect
from workspaces.models import AuditEvent, BrowserSession, ExternalAccount, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
ISSUER = "https://id.example.org"
CARL = ExternalIdentity(ISSUER, "7", "OIDC", "carl", email="carl@example.org")


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> None:
    settings.SIGN_IN = ExternalSignIn(oidc=OidcProvider(issuer=ISSUER, name="Example"))


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.set_password(PASSWORD)
    user.save()
    User.objects.filter(pk=user.pk).update(email=CARL.email)
    connect(user, CARL)
    return user


@pytest.fixture
def account(carl: User) -> ExternalAccount:
    return ExternalAccount.objects.get(user=carl)


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


class TestByItsPerson:
    def test_ends_signing_in_by_it(self, carl: User, account: ExternalAccount) -> None:
        page = client_of(carl)
        assert "Disconnect" in text_of(page, "/settings/profile/")
        page.post(f"/settings/profile/accounts/{account.pk}/disconnect/")
        assert "You cannot sign in with Example any more." in text_of(page, "/settings/profile/")
        assert AuditEvent.objects.get(verb="person.disconnected").actor == "carl"
        with pytest.raises(SignInRefused, match="connect it again under Settings, Profile"):
            sign_in_person(CARL)  # also not by the same verified mail address
        assert page.post(f"/settings/profile/accounts/{account.pk}/disconnect/").status_code == 404

    def test_asks_for_the_password(self, carl: User, account: ExternalAccount) -> None:
        page = client_of(carl)
        session = page.session
        session["password_confirmed_at"] = 0.0
        session.save()
        assert page.post(f"/settings/profile/accounts/{account.pk}/disconnect/").status_code == 403
        assert page.get(f"/settings/profile/accounts/{account.pk}/disconnect/").status_code == 405
        assert ExternalAccount.objects.get().disconnected_at is None

    def test_can_be_connected_again_also_to_somebody_else(self, carl: User, account: ExternalAccount) -> None:
        disconnect(carl, account)
        connect(carl, CARL)
        assert sign_in_person(CARL) == carl
        disconnect(carl, account)
        other = make_person("other")
        connect(other, CARL)
        assert sign_in_person(CARL) == other

    def test_is_refused_if_it_is_the_only_way(self, carl: User, account: ExternalAccount) -> None:
        carl.set_unusable_password()
        carl.save()
        page = client_of(carl)
        page.post(f"/settings/profile/accounts/{account.pk}/disconnect/")
        assert "Ask an operator of this hub for a link for a new password" in text_of(
            page, "/settings/profile/"
        )
        assert ExternalAccount.objects.get().disconnected_at is None

    def test_is_refused_without_passwords_unless_a_proxy_is_left(
        self, carl: User, account: ExternalAccount, settings: Settings
    ) -> None:
        oidc = OidcProvider(issuer=ISSUER)
        settings.SIGN_IN = ExternalSignIn(oidc=oidc, has_passwords=False)
        connect(carl, ExternalIdentity("proxy", "carl", "proxy"))
        with pytest.raises(DisconnectRefused, match="this hub accepts no passwords"):
            disconnect(carl, account)
        settings.SIGN_IN = ExternalSignIn(oidc=oidc, has_passwords=False, header=UserHeader("Remote-User"))
        assert disconnect(carl, account)

    def test_of_somebody_else_does_not_exist(self, account: ExternalAccount) -> None:
        page = client_of(make_person("mallory", None))
        assert page.post(f"/settings/profile/accounts/{account.pk}/disconnect/").status_code == 404


class TestByAnOperator:
    def test_ends_the_sessions_of_the_person(self, carl: User, account: ExternalAccount) -> None:
        client_of(carl)
        carl.set_unusable_password()
        carl.save()
        operator = client_of(make_operator())
        assert "Accounts of other services" in text_of(operator, f"/people/{carl.pk}/")
        operator.post(f"/people/{carl.pk}/accounts/{account.pk}/disconnect/")
        assert ExternalAccount.objects.get().disconnected_at is not None
        assert not BrowserSession.objects.filter(user=carl).exists()
        assert AuditEvent.objects.get(verb="person.disconnected").actor == "olivia"
