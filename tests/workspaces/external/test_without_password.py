"""People who sign in by a provider, and hubs that accept no passwords."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from tests.people import PASSWORD, client_of, make_contributor, make_owner, make_workspace
from trainhub.env import EnvError
from trainhub.web.sign_in import external_sign_in, oidc_apps
from workspaces.authentication import confirmation
from workspaces.authentication.external.configuration import ExternalSignIn, OidcProvider
from workspaces.mail import invitation_links
from workspaces.models import ApiToken, User
from workspaces.states import Role

PROVIDER = OidcProvider("https://id.example.org", "trainhub", "secret", "Example ID")
GOOD = {
    "OIDC_ISSUER": "https://id.example.org/realms/a/",
    "OIDC_CLIENT_ID": "trainhub",
    "OIDC_CLIENT_SECRET": "secret",
}


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey")
class TestHubWithoutPasswords:
    @pytest.fixture(autouse=True)
    def only_provider(self, settings: Settings) -> None:
        settings.SIGN_IN = ExternalSignIn(oidc=PROVIDER, has_passwords=False)

    def test_offers_and_takes_none(self) -> None:
        owner = make_owner()
        owner.set_password(PASSWORD)
        owner.save()
        page = Client().get("/sign-in/").content.decode()
        assert "Sign in with Example ID" in page
        assert 'type="password"' not in page
        client = Client()
        form = {"username": "olivia", "password": PASSWORD}
        assert "This hub accepts no passwords" in client.post("/sign-in/", form, follow=True).content.decode()
        assert "_auth_user_id" not in client.session

    def test_leads_from_an_invitation_to_the_provider_and_back(self) -> None:
        address = invitation_links.create_link("test", make_workspace(), Role.VIEWER)[1]
        path = f"/{address.split('/', 3)[3]}"
        answer = Client().get(path)
        assert answer.headers["Location"].startswith("/sign-in/?next=%2Fsign-in%2Finvitation%2Fthi_")


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey")
class TestPersonWithoutPassword:
    @pytest.fixture
    def carl(self, settings: Settings) -> User:
        settings.SIGN_IN = ExternalSignIn(oidc=PROVIDER)
        user = make_contributor()
        user.set_unusable_password()
        user.save()
        return user

    def test_confirms_a_change_by_signing_in_again(self, carl: User, monkeypatch: pytest.MonkeyPatch) -> None:
        client = client_of(carl)
        assert client.post("/settings/tokens/", {"name": "fresh"}).status_code == 200
        session = client.session
        del session[confirmation.CONFIRMED_AT]
        session.save()
        answer = client.post("/settings/tokens/", {"name": "late"})
        assert answer.status_code == 403
        assert "Sign in again with Example ID" in answer.content.decode()
        assert [token.name for token in ApiToken.objects.all()] == ["fresh"]

    def test_has_no_password_to_change(self, carl: User) -> None:
        page = client_of(carl).get("/settings/password/", follow=True).content.decode()
        assert "so there is none to change" in page


class TestSettings:
    def read(self, monkeypatch: pytest.MonkeyPatch, **variables: str) -> ExternalSignIn:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return external_sign_in()

    def test_without_any_passwords_are_the_only_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sign_in = self.read(monkeypatch)
        assert sign_in == ExternalSignIn()
        assert oidc_apps(sign_in) == []

    def test_name_a_provider(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sign_in = self.read(monkeypatch, **GOOD, SIGN_IN_GROUPS="a=b:viewer", PASSWORD_SIGN_IN="0")
        assert sign_in.oidc.issuer == "https://id.example.org/realms/a"
        assert sign_in.groups == {"a": {"b": Role.VIEWER}}
        assert "allauth.socialaccount" in oidc_apps(sign_in)

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ({**GOOD, "OIDC_ISSUER": "http://id.example.org"}, "must be an https:// address"),
            ({**GOOD, "OIDC_CLIENT_SECRET": ""}, "needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET"),
            ({**GOOD, "OIDC_SCOPES": "profile"}, "must contain openid"),
            ({"SIGN_IN_GROUPS": "a=b"}, "SIGN_IN_GROUPS: 'a=b' must be like"),
            ({"PASSWORD_SIGN_IN": "0"}, "lets nobody in"),
        ],
    )
    def test_that_contradict_each_other_are_refused(
        self, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
    ) -> None:
        with pytest.raises(EnvError, match=words):
            self.read(monkeypatch, **variables)
