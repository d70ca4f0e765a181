"""A person's display name, and the mail address that a link confirms."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.people import api_client, client_of, make_contributor, make_owner
from tests.workspaces.mail.mailbox import Mailbox, path_in
from workspaces.mail import mail_addresses, outgoing_mails
from workspaces.mail.errors import MailError
from workspaces.models import AuditEvent, MailConfirmation, OutgoingMail, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
ADDRESS = "carl@example.org"


@pytest.fixture
def carl() -> User:
    return make_contributor()


@pytest.fixture
def page(carl: User) -> Client:
    return client_of(carl)


def link_for(page: Client, mailbox: Mailbox, address: str = ADDRESS) -> str:
    page.post("/settings/profile/mail/", {"address": address})
    outgoing_mails.tick(timezone.now())
    return path_in(mailbox.letter_to(address))


class TestName:
    def test_stands_beside_the_user_name(self, page: Client, carl: User) -> None:
        page.post("/settings/profile/", {"display_name": "  Carl   Friedrich "})
        assert "Carl Friedrich (carl)" in page.get("/").content.decode()
        assert api_client(carl).get("/api/v1/me/").json()["display_name"] == "Carl Friedrich"
        assert AuditEvent.objects.get(verb="person.renamed").detail == {"display_name": "Carl Friedrich"}

    @pytest.mark.parametrize("name", ["a\x00b", "Carl\u202e", "x" * 101])
    def test_with_invisible_characters_or_too_long_is_refused(self, page: Client, name: str) -> None:
        answer = page.post("/settings/profile/", {"display_name": name})
        assert answer.status_code == 400
        assert User.objects.get(username="carl").display_name == ""


class TestAddress:
    def test_is_theirs_once_the_link_is_opened(self, page: Client, carl: User, mailbox: Mailbox) -> None:
        path = link_for(page, mailbox)
        assert "Not confirmed yet" in page.get("/settings/profile/").content.decode()
        visitor = Client()
        assert "Confirm the address" in visitor.get(path).content.decode()
        assert User.objects.get(pk=carl.pk).email == "", "opening the page alone changes nothing"
        assert visitor.post(path).status_code == 302
        assert User.objects.get(pk=carl.pk).email == ADDRESS
        verbs = AuditEvent.objects.filter(verb__startswith="mail.").order_by("pk")
        assert [event.verb for event in verbs] == ["mail.requested", "mail.confirmed"]

    def test_its_link_works_once(self, page: Client, mailbox: Mailbox) -> None:
        path = link_for(page, mailbox)
        Client().post(path)
        assert Client().get(path).status_code == 404
        assert Client().post(path).status_code == 404

    def test_its_link_expires(self, page: Client, mailbox: Mailbox) -> None:
        path = link_for(page, mailbox)
        MailConfirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert Client().post(path).status_code == 404

    def test_a_newer_link_replaces_it(self, page: Client, mailbox: Mailbox) -> None:
        first = link_for(page, mailbox)
        second = link_for(page, mailbox, "other@example.org")
        assert Client().get(first).status_code == 404
        assert Client().get(second).status_code == 200

    def test_of_somebody_else_is_refused_whatever_its_case(self, page: Client, mailbox: Mailbox) -> None:
        assert mail_addresses.checked_address("Carl@BÜCHER.example") == "Carl@bücher.example"
        User.objects.filter(pk=make_owner().pk).update(email="Carl@Example.org")
        answer = page.post("/settings/profile/mail/", {"address": ADDRESS})
        assert answer.status_code == 400
        assert "This address belongs to somebody else here" in answer.content.decode()
        assert not OutgoingMail.objects.exists()

    def test_of_somebody_who_was_faster_is_refused_by_the_link(self, page: Client, mailbox: Mailbox) -> None:
        path = link_for(page, mailbox)
        User.objects.filter(pk=make_owner().pk).update(email="CARL@example.org")
        answer = Client().post(path)
        assert answer.status_code == 409
        assert "This address belongs to somebody else here" in answer.content.decode()
        assert User.objects.get(username="carl").email == ""

    def test_a_change_is_told_to_the_earlier_address(
        self, page: Client, carl: User, mailbox: Mailbox
    ) -> None:
        User.objects.filter(pk=carl.pk).update(email="before@example.org")
        Client().post(link_for(page, mailbox))
        outgoing_mails.tick(timezone.now())
        letter = mailbox.letter_to("before@example.org")
        assert "no longer has this mail address" in letter.get_content().replace("\n", " ")

    def test_can_be_removed(self, page: Client, carl: User, mailbox: Mailbox) -> None:
        User.objects.filter(pk=carl.pk).update(email=ADDRESS)
        page.post("/settings/profile/mail/remove/")
        assert User.objects.get(pk=carl.pk).email == ""

    @pytest.mark.parametrize("address", ["carl", "a\x00b@example.org", f"{'x' * 250}@example.org", ""])
    def test_that_is_none_is_refused(self, page: Client, mailbox: Mailbox, address: str) -> None:
        assert page.post("/settings/profile/mail/", {"address": address}).status_code == 400

    def test_cannot_be_changed_ever_again_on_one_day(self, carl: User, mailbox: Mailbox) -> None:
        for number in range(mail_addresses.MAX_A_DAY):
            mail_addresses.request_address(carl, f"{number}@example.org")
        with pytest.raises(MailError, match="try again tomorrow"):
            mail_addresses.request_address(carl, "again@example.org")

    def test_a_hub_without_mail_says_so(self, page: Client) -> None:
        assert "This hub sends no mail" in page.get("/settings/profile/").content.decode()
        answer = page.post("/settings/profile/mail/", {"address": ADDRESS})
        assert "this hub sends no mail; an operator can set EMAIL_URL" in answer.content.decode()


class TestSending:
    def test_is_tried_again_with_another_link(self, page: Client, mailbox: Mailbox) -> None:
        mailbox.is_refusing = True
        page.post("/settings/profile/mail/", {"address": ADDRESS})
        assert outgoing_mails.tick(timezone.now()) == 0
        mail = OutgoingMail.objects.get()
        assert (mail.state, mail.tries) == ("waiting", 1)
        assert "refuses the address" in mail.last_error
        mailbox.is_refusing = False
        assert outgoing_mails.tick(timezone.now() + timedelta(minutes=1)) == 1
        assert Client().get(path_in(mailbox.letter_to(ADDRESS))).status_code == 200

    def test_ends_after_an_hour(self, page: Client, mailbox: Mailbox) -> None:
        mailbox.is_refusing = True
        page.post("/settings/profile/mail/", {"address": ADDRESS})
        OutgoingMail.objects.update(created_at=timezone.now() - timedelta(hours=2))
        outgoing_mails.tick(timezone.now())
        assert OutgoingMail.objects.get().state == "failed"

    def test_no_text_of_a_link_is_stored(self, page: Client, mailbox: Mailbox) -> None:
        text = link_for(page, mailbox).strip("/").rpartition("/")[2]
        stored = [*OutgoingMail.objects.values_list(), *MailConfirmation.objects.values_list()]
        assert text not in str(stored)
