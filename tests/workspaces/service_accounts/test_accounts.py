"""Accounts of a workspace for programs: who makes them, what they may do, and what is only for people."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from jobs.models import Run
from tests.jobs.builders import queued
from tests.people import (
    PASSWORD,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
)
from workspaces import people, tokens
from workspaces.administration import accounts as administration
from workspaces.administration import password_links, workspace_changes
from workspaces.administration.errors import AdministrationError
from workspaces.authentication.external.accounts import ExternalIdentity, SignInRefused, sign_in_person
from workspaces.mail import password_reset
from workspaces.models import ApiToken, AuditEvent, Membership, OutgoingMail, User
from workspaces.notifications import channels
from workspaces.notifications.channels import ChannelError
from workspaces.service_accounts import account_tokens, accounts
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.states import MailKind, Role, TokenScope

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
NAME = "ci-nightly"


@pytest.fixture
def owner() -> User:
    return make_owner()


@pytest.fixture
def account(owner: User) -> User:
    return accounts.create(owner, make_workspace(), NAME, Role.CONTRIBUTOR)


def token_of(owner: User, account: User, scope: TokenScope = TokenScope.WRITE) -> str:
    return account_tokens.create_token(owner, account, "pipeline", scope, None)[1]


def program(text: str) -> Client:
    return Client(headers={"authorization": f"Bearer {text}"})


class TestAccount:
    def test_acts_in_its_workspace_with_its_role(self, owner: User, account: User) -> None:
        me = program(token_of(owner, account)).get("/api/v1/me/").json()
        assert (me["user"], me["workspace"], me["role"]) == (NAME, "default", "contributor")

    def test_is_named_by_the_audit_trail_with_who_made_it(self, account: User) -> None:
        event = AuditEvent.objects.get(verb="service_account.created")
        assert (event.actor, event.subject, account.made_by) == ("olivia", NAME, "olivia")

    def test_owns_its_runs_and_outlives_who_made_it(self, account: User, owner: User) -> None:
        text = token_of(owner, account)
        run = queued(principal_of(account))
        make_person("second", Role.OWNER)
        administration.deactivate("test", owner)
        assert program(text).get("/api/v1/me/").status_code == 200
        assert Run.objects.get(pk=run.pk).created_by == account

    def test_that_is_disabled_is_refused_until_it_is_enabled(self, owner: User, account: User) -> None:
        text = token_of(owner, account)
        assert accounts.set_active(owner, account, is_active=False)
        assert tokens.authenticate(text) is None
        with pytest.raises(ServiceAccountError, match="enable it first"):
            token_of(owner, account)
        assert accounts.set_active(owner, account, is_active=True)
        assert tokens.authenticate(text) is not None

    def test_that_is_deleted_keeps_its_runs_and_its_name(self, owner: User, account: User) -> None:
        text, run = token_of(owner, account), queued(principal_of(account))
        accounts.delete(owner, account)
        assert tokens.authenticate(text) is None
        assert not accounts.listed(make_workspace()).exists()
        assert str(Run.objects.get(pk=run.pk).created_by) == NAME
        with pytest.raises(ServiceAccountError, match="is the name of a service account here"):
            accounts.create(owner, make_workspace(), NAME, Role.VIEWER)
        with pytest.raises(ServiceAccountError, match="was deleted"):
            accounts.set_active(owner, account, is_active=True)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("carl", "is the name of a person"), ("CARL", "is the name of a person"), ("a b", "use letters")],
    )
    def test_shares_its_name_with_nobody(self, owner: User, name: str, reason: str) -> None:
        make_contributor()
        with pytest.raises(ServiceAccountError, match=reason):
            accounts.create(owner, make_workspace(), name, Role.VIEWER)

    def test_is_limited_in_number(self, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accounts, "MAX_ACCOUNTS", 1)
        accounts.create(owner, make_workspace(), "one", Role.VIEWER)
        with pytest.raises(ServiceAccountError, match="delete one first"):
            accounts.create(owner, make_workspace(), "two", Role.VIEWER)

    def test_has_a_limited_number_of_tokens(
        self, owner: User, account: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(account_tokens, "MAX_TOKENS", 1)
        token_of(owner, account)
        with pytest.raises(ServiceAccountError, match="revoke one first"):
            token_of(owner, account)


class TestWhatIsForPeople:
    def test_is_no_role_above_contributor(self, owner: User, account: User) -> None:
        with pytest.raises(ServiceAccountError, match="only people can be owner"):
            accounts.create(owner, make_workspace(), "boss", Role.OWNER)
        with pytest.raises(ServiceAccountError, match="only people can be owner"):
            accounts.change_role(owner, account, Role.OWNER)
        with pytest.raises(people.PeopleError, match="only people can be owner"):
            people.set_role(owner, Membership.objects.get(user=account), Role.OWNER)
        with pytest.raises(AdministrationError, match="is a service account"):
            administration.set_operator(owner, account, is_operator=True)
        with pytest.raises(AdministrationError, match="is a service account"):
            workspace_changes.create(owner, "New", owner=account)

    def test_no_way_to_sign_in(self, account: User, settings: Settings) -> None:
        assert not account.has_usable_password()
        answer = Client().post("/sign-in/", {"username": NAME, "password": PASSWORD})
        assert "the password is wrong" in answer.content.decode()
        with pytest.raises(AdministrationError, match="is a service account"):
            password_links.create_link("test", account)
        mail = OutgoingMail(kind=MailKind.RESET, recipient=NAME)
        assert password_reset.person_to_write_to(mail) is None
        with pytest.raises(SignInRefused, match="A service account here is called ci-nightly"):
            sign_in_person(ExternalIdentity("https://id.example.org", "1", "OIDC", NAME))

    def test_no_second_workspace(self, account: User) -> None:
        other = make_person("mallory", Role.OWNER, make_workspace("other"))
        with pytest.raises(people.PeopleError, match="is a service account"):
            people.add(principal_of(other), NAME, Role.VIEWER)
        with pytest.raises(CommandError, match="leave --all-workspaces out"):
            call_command("token", "create", NAME, all_workspaces=True)

    def test_no_mail(self, account: User, settings: Settings) -> None:
        settings.EMAIL_URL = "smtp://127.0.0.1:1"
        fields = {"name": "mine", "target": "ci@example.org", "events": ["run.failed"]}
        with pytest.raises(ChannelError, match="service accounts, which get no mail"):
            channels.create(principal_of(account), "own", "mail", fields)

    def test_no_page_among_people(self, account: User) -> None:
        operator = client_of(make_operator())
        page = operator.get("/people/").content.decode()
        assert f'/people/{account.pk}/"' not in page
        assert NAME in page
        assert operator.get(f"/people/{account.pk}/").status_code == 404
        with pytest.raises(CommandError, match="is a service account"):
            call_command("person", "deactivate", NAME)


class TestCommand:
    def test_makes_lists_and_ends_one(self) -> None:
        make_workspace()
        out = io.StringIO()
        call_command("service_account", "create", "default", NAME, role="viewer", stdout=out, stderr=out)
        call_command("token", "create", NAME, stdout=out, stderr=out)
        call_command("service_account", "list", stdout=out)
        assert f"{NAME}\tactive\tviewer of default\tmade by command line" in out.getvalue()
        call_command("service_account", "disable", NAME, stderr=out)
        with pytest.raises(CommandError, match=f"manage.py service_account enable {NAME}"):
            call_command("token", "create", NAME)
        call_command("service_account", "enable", NAME, stderr=out)
        call_command("service_account", "delete", NAME, stderr=out)
        assert ApiToken.objects.get().revoked_at is not None
        with pytest.raises(CommandError, match="service_account list"):
            call_command("service_account", "disable", NAME)
