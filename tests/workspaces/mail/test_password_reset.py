"""A new password by mail; whoever asks learns nothing about who has an account."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.people import PASSWORD, client_of, make_contributor, make_operator
from tests.workspaces.mail.mailbox import Mailbox, path_in
from workspaces.administration import password_links
from workspaces.authentication.external.configuration import ExternalSignIn
from workspaces.mail import outgoing_mails, password_reset
from workspaces.models import AuditEvent, OutgoingMail, PasswordLink, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
ADDRESS = "carl@example.org"
NEW = {"new_password1": PASSWORD, "new_password2": PASSWORD}
TOKEN = re.compile(r'value="[A-Za-z0-9]{64}"|X-CSRFToken": "[A-Za-z0-9]{64}"')


@pytest.fixture
def carl() -> User:
    user = make_contributor()
    user.email = ADDRESS
    user.set_password("the old one 123")
    user.save()
    return user


def ask(name: str, client: Client | None = None) -> str:
    """Asks for a link; the page, without what differs in each answer."""
    answer = (client or Client()).post("/sign-in/forgot/", {"name": name})
    assert answer.status_code == 200
    return TOKEN.sub("", answer.content.decode())


def send() -> int:
    return outgoing_mails.tick(timezone.now())


class TestLink:
    @pytest.mark.parametrize("name", ["carl", "CARL@example.ORG"])
    def test_comes_by_mail_and_replaces_the_password(self, carl: User, mailbox: Mailbox, name: str) -> None:
        session = client_of(carl)
        ask(name)
        assert send() == 1
        path = path_in(mailbox.letter_to(ADDRESS))
        assert Client().post(path, NEW).headers["Location"] == "/sign-in/"
        assert Client().login(username="carl", password=PASSWORD)
        assert session.get("/").headers["Location"].startswith("/sign-in/"), "other sessions have ended"
        assert Client().post(path, NEW).status_code == 404
        verbs = AuditEvent.objects.filter(verb__startswith="password.").order_by("pk")
        assert [event.verb for event in verbs] == ["password.link_mailed", "password.changed_by_link"]

    def test_expires_after_an_hour(self, carl: User, mailbox: Mailbox) -> None:
        ask("carl")
        send()
        left = PasswordLink.objects.get().expires_at - timezone.now()
        assert timedelta(minutes=55) < left <= timedelta(hours=1)

    def test_leaves_the_link_of_an_operator_in_force(self, carl: User, mailbox: Mailbox) -> None:
        """Anybody can ask for a mail, and must not take another way in from a person by that."""
        link, _ = password_links.create_link(make_operator(), carl)
        ask("carl")
        send()
        assert PasswordLink.objects.filter(pk=link.pk).exists()

    def test_ends_all_other_links_when_it_is_used(self, carl: User, mailbox: Mailbox) -> None:
        password_links.create_link(make_operator(), carl)
        ask("carl")
        send()
        Client().post(path_in(mailbox.letter_to(ADDRESS)), NEW)
        assert not PasswordLink.objects.exists()


class TestAnswer:
    def test_is_the_same_for_every_name(self, carl: User, mailbox: Mailbox) -> None:
        make_operator()
        User.objects.filter(username="olivia").update(is_active=False)
        names = ("carl", ADDRESS, "olivia", "nobody", "nobody@example.org", "a b c")
        assert len({ask(name) for name in names}) == 1
        assert send() == 2, "carl by name and by address"
        assert {letter["To"] for letter in mailbox.letters} == {ADDRESS}

    def test_writes_the_same_rows_for_every_name(
        self, carl: User, mailbox: Mailbox, django_assert_num_queries: object
    ) -> None:
        """Otherwise its time would tell who has an account."""
        ask("carl")
        ask("nobody")
        rows = OutgoingMail.objects.order_by("pk").values("kind", "state", "user", "tries")
        assert rows[0] == rows[1]

    def test_says_that_a_hub_without_mail_sends_none(self, carl: User) -> None:
        assert "This hub sends no mail for new passwords" in Client().get("/sign-in/forgot/").content.decode()
        ask("carl")
        assert not OutgoingMail.objects.exists()
        assert "Forgot the password?" not in Client().get("/sign-in/").content.decode()

    def test_a_name_with_nul_is_refused(self, mailbox: Mailbox) -> None:
        assert "Null characters are not allowed" in ask("carl\x00")


class TestPersonWithoutPassword:
    def test_gets_no_mail(self, carl: User, mailbox: Mailbox) -> None:
        """A provider that no longer knows somebody would otherwise have kept nobody out."""
        carl.set_unusable_password()
        carl.save()
        ask("carl")
        assert send() == 0

    def test_nobody_gets_one_where_passwords_are_not_accepted(
        self, carl: User, mailbox: Mailbox, settings: Settings
    ) -> None:
        settings.SIGN_IN = ExternalSignIn(has_passwords=False)
        assert "sends no mail for new passwords" in ask("carl")
        assert not OutgoingMail.objects.exists()


class TestLimits:
    def test_a_name_is_asked_for_few_times_from_an_address(self, carl: User, mailbox: Mailbox) -> None:
        client = Client()
        for _ in range(5):
            ask("carl", client)
        answer = client.post("/sign-in/forgot/", {"name": "carl"})
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1

    def test_an_address_asks_for_few_names(self, mailbox: Mailbox) -> None:
        client = Client()
        statuses = [
            client.post("/sign-in/forgot/", {"name": f"name{number}"}).status_code for number in range(55)
        ]
        assert 429 in statuses

    def test_a_person_gets_few_mails_whoever_asks(self, carl: User, mailbox: Mailbox) -> None:
        for number in range(password_reset.MAX_AN_HOUR + 2):
            password_reset.request_reset("carl", f"10.0.0.{number}")
        send()
        assert len(mailbox.letters) == password_reset.MAX_AN_HOUR

    def test_requests_do_not_delay_signing_in(self, carl: User, mailbox: Mailbox) -> None:
        carl.set_password(PASSWORD)
        carl.save()
        client = Client()
        for _ in range(6):
            client.post("/sign-in/forgot/", {"name": "carl"})
        answer = client.post("/sign-in/", {"username": "carl", "password": PASSWORD})
        assert answer.status_code == 302
