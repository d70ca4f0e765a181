"""The sessions of a person: listed in the settings, and ended one by one or all but one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from tests.people import PASSWORD, client_of, token_of
from trainhub.tasks import clear_sessions
from workspaces import process_caches, tokens
from workspaces.authentication import sessions
from workspaces.authentication.browsers import MAX_LENGTH, browser_name
from workspaces.models import AuditEvent, BrowserSession, User

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.0 Mobile/15E148 Safari/604.1"
)


def signed_in(user: User, agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    """A browser in which the person has signed in by the page."""
    if not user.password:
        user.set_password(PASSWORD)
        user.save()
    client = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    answer = client.post("/sign-in/", {"username": user.username, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def row_of(client: Client) -> BrowserSession:
    return BrowserSession.objects.get(session_key=client.cookies[settings.SESSION_COOKIE_NAME].value)


def page(client: Client) -> str:
    answer = client.get("/settings/")
    assert answer.status_code == 200
    return answer.content.decode()


def is_signed_in(client: Client) -> bool:
    return client.get("/settings/").status_code == 200


class TestList:
    def test_names_browser_and_address_and_marks_this_one(self, viewer: User) -> None:
        laptop, phone = signed_in(viewer), signed_in(viewer, SAFARI, "192.0.2.8")
        text = " ".join(page(laptop).split())
        assert 'Firefox on Linux <span class="th-tag th-tone-completed">this one</span>' in text
        assert text.count("this one") == 1
        assert "Safari on iPhone" in text
        assert "192.0.2.7" in text
        assert "192.0.2.8" in text
        assert "Sign out everywhere else" in text
        assert row_of(phone).session_key not in text, "a session's key opens the hub"

    def test_a_single_session_needs_no_way_to_end_the_others(self, viewer: User) -> None:
        assert "Sign out everywhere else" not in page(signed_in(viewer))

    def test_shows_only_ones_own(self, viewer: User, owner: User) -> None:
        signed_in(owner, SAFARI)
        assert "Safari" not in page(signed_in(viewer))

    def test_ended_and_expired_ones_are_not_listed(self, viewer: User) -> None:
        here, left, old = signed_in(viewer), signed_in(viewer, "left/1"), signed_in(viewer, "old/1")
        left.post("/sign-out/")
        Session.objects.filter(pk=row_of(old).session_key).update(expire_date=timezone.now())
        text = page(here)
        assert "left/1" not in text
        assert "old/1" not in text

    def test_sessions_of_an_earlier_password_are_not_listed(self, viewer: User) -> None:
        signed_in(viewer, SAFARI)
        viewer.set_password("another Password 1")
        viewer.save()
        assert "Safari" not in page(client_of(viewer))

    def test_a_session_keeps_its_row_when_its_key_changes(self, viewer: User) -> None:
        client = signed_in(viewer)
        before = row_of(client)
        session = client.session
        session["password_confirmed_at"] = 0.0
        session.save()
        client.post("/settings/tokens/", {"name": "laptop", "confirm_password": PASSWORD})
        after = row_of(client)
        assert after.session_key != before.session_key
        assert after.pk == before.pk
        assert page(client).count("Firefox on Linux") == 2, "its name and the label of its button"

    def test_after_a_sign_in_with_a_new_password_only_the_new_one_is_noted(self, viewer: User) -> None:
        client = signed_in(viewer)
        viewer.set_password("another Password 1")
        viewer.save()
        client.post("/sign-in/", {"username": viewer.username, "password": "another Password 1"})
        assert BrowserSession.objects.get() == row_of(client)

    def test_what_a_process_remembers_of_them_stays_small(
        self, viewer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "MAX_NOTED", 2)
        for _ in range(5):
            signed_in(viewer)
        assert len(sessions._noted) <= 2
        assert BrowserSession.objects.count() == 5

    def test_one_that_began_before_the_upgrade_is_noted_at_its_next_request(self, viewer: User) -> None:
        client = signed_in(viewer)
        BrowserSession.objects.all().delete()
        process_caches.clear_all()
        assert is_signed_in(client)
        assert "Firefox on Linux" in page(client)

    def test_its_last_use_is_noted_at_most_every_few_minutes(self, viewer: User) -> None:
        client = signed_in(viewer)
        hour = timezone.now() - timedelta(hours=1)
        BrowserSession.objects.update(last_seen_at=hour)
        page(client)
        assert row_of(client).last_seen_at == hour
        process_caches.clear_all()
        page(client)
        assert row_of(client).last_seen_at > hour

    def test_what_is_noted_of_a_deleted_session_is_deleted_a_day_later(self, viewer: User) -> None:
        client = signed_in(viewer)
        row = row_of(client)
        Session.objects.all().delete()
        clear_sessions()
        assert BrowserSession.objects.filter(pk=row.pk).exists()
        BrowserSession.objects.update(last_seen_at=timezone.now() - timedelta(days=2))
        clear_sessions()
        assert not BrowserSession.objects.exists()


class TestEnd:
    def test_the_browser_has_to_sign_in_again_and_the_others_do_not(self, viewer: User) -> None:
        laptop, phone = signed_in(viewer), signed_in(viewer, SAFARI)
        answer = laptop.post(f"/settings/sessions/{row_of(phone).pk}/end/", follow=True)
        assert "Signed out: Safari on iPhone." in answer.content.decode()
        assert not is_signed_in(phone)
        assert is_signed_in(laptop)
        event = AuditEvent.objects.get(verb="session.ended")
        assert event.detail == {"browser": "Safari on iPhone", "address": "192.0.2.7"}

    def test_this_browser_is_signed_out_as_by_the_button(self, viewer: User) -> None:
        client = signed_in(viewer)
        answer = client.post(f"/settings/sessions/{row_of(client).pk}/end/")
        assert answer.headers["Location"] == "/sign-in/"
        assert not is_signed_in(client)
        assert not BrowserSession.objects.exists()

    def test_nobody_ends_anothers(self, viewer: User, owner: User) -> None:
        client = signed_in(viewer)
        answer = signed_in(owner).post(f"/settings/sessions/{row_of(client).pk}/end/")
        assert answer.status_code == 404
        assert is_signed_in(client)

    def test_all_others_end_also_those_that_are_not_noted(self, viewer: User, owner: User) -> None:
        here, phone, old, boss = signed_in(viewer), signed_in(viewer), signed_in(viewer), signed_in(owner)
        row_of(old).delete()
        text = token_of(viewer)
        answer = here.post("/settings/sessions/end-others/", follow=True)
        assert "2 other sessions have ended." in answer.content.decode()
        assert [is_signed_in(client) for client in (here, phone, old, boss)] == [True, False, False, True]
        assert tokens.authenticate(text) is not None
        assert AuditEvent.objects.get(verb="session.others_ended").detail == {"count": 2}


class TestBrowserName:
    @pytest.mark.parametrize(
        ("agent", "name"),
        [
            (FIREFOX, "Firefox on Linux"),
            (SAFARI, "Safari on iPhone"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
                "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
                "Mobile Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
                "Version/18.0 Safari/605.1.15",
                "Safari on macOS",
            ),
            ("python-httpx/0.28", "python-httpx/0.28"),
            ("", ""),
        ],
    )
    def test_of_common_browsers(self, agent: str, name: str) -> None:
        assert browser_name(agent) == name

    def test_an_unknown_header_is_cut_and_escaped(self, viewer: User) -> None:
        assert len(browser_name("x\x00" * 500)) == MAX_LENGTH
        assert "&lt;b&gt;me&lt;/b&gt;" in page(signed_in(viewer, "<b>me</b>"))


def test_a_program_with_a_token_has_no_session(viewer: User) -> None:
    client = Client(headers={"authorization": f"Bearer {token_of(viewer)}"})
    assert client.get("/api/v1/me/").status_code == 200
    assert not BrowserSession.objects.exists()
