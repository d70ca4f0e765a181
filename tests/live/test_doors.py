from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.utils import timezone

from live.origins import same_origin
from live.publish import publish
from live.topics import run_topic
from tests.live.sockets import (
    HOST,
    ORIGIN,
    Watcher,
    application,
    event,
    opened,
    unopened,
    with_session,
    with_token,
)
from tests.people import client_of, make_owner, make_stranger, make_viewer, principal_of, token_of
from workspaces import people, tokens
from workspaces.http.scopes import bearer, principal_of_scope
from workspaces.models import ApiToken, BrowserSession, Membership, User
from workspaces.states import Role

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
FOREIGN = (b"origin", b"http://evil.example")


@pytest.fixture
def vera() -> User:
    return make_viewer()


def session_of(user: User) -> str:
    return client_of(user).cookies[settings.SESSION_COOKIE_NAME].value


async def is_refused(run: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """Refused before the handshake, so that nothing was ever accepted."""
    return not await unopened(run, headers).opens()


class TestSocket:
    async def test_opens_for_a_members_token(self, vera: User) -> None:
        token = await database_sync_to_async(token_of)(vera)
        await (await opened("a", with_token(token))).closes()

    async def test_opens_for_a_members_session_on_our_own_page(self, vera: User) -> None:
        key = await database_sync_to_async(session_of)(vera)
        await (await opened("a", with_session(key, ORIGIN))).closes()

    async def test_is_refused_to_another_sites_page_though_the_browser_sends_the_cookie(
        self, vera: User
    ) -> None:
        key = await database_sync_to_async(session_of)(vera)
        assert await is_refused("a", with_session(key, FOREIGN))

    async def test_is_refused_to_a_session_without_an_origin(self, vera: User) -> None:
        assert await is_refused("a", with_session(await database_sync_to_async(session_of)(vera)))

    async def test_is_refused_to_nobody(self) -> None:
        assert await is_refused("a", [HOST, ORIGIN])
        assert await is_refused("a", with_token("th_nonsense"))
        assert await is_refused("a", with_session("nonsense", ORIGIN))

    async def test_is_refused_to_a_token_that_has_expired(self, vera: User) -> None:
        token = await database_sync_to_async(token_of)(vera)
        await ApiToken.objects.aupdate(expires_at=timezone.now() - timedelta(seconds=1))
        assert await is_refused("a", with_token(token))

    async def test_is_refused_to_a_stranger(self) -> None:
        key = await database_sync_to_async(lambda: session_of(make_stranger()))()
        assert await is_refused("a", with_session(key, ORIGIN))

    async def test_is_refused_where_the_consumer_says_no(self, vera: User) -> None:
        watcher = unopened("secret", with_token(await database_sync_to_async(token_of)(vera)))
        assert not await watcher.opens()
        await watcher.closes()

    async def test_is_refused_at_an_unknown_address(self, vera: User) -> None:
        headers = with_token(await database_sync_to_async(token_of)(vera))
        assert not await Watcher(application(), "/ws/nothing/", headers).opens()

    async def test_reads_no_token_from_the_address(self, vera: User) -> None:
        token = await database_sync_to_async(token_of)(vera)
        assert not await unopened("a", [HOST, ORIGIN], f"token={token}").opens()


class TestOpenSocket:
    """What was allowed when it opened may not be later."""

    async def test_closes_when_its_person_is_removed(self, vera: User) -> None:
        watcher = await opened("a", with_token(await database_sync_to_async(token_of)(vera)))
        await database_sync_to_async(
            lambda: people.remove(principal_of(make_owner()), vera.memberships.get())
        )()
        assert await watcher.is_closed_with() == 4403

    async def test_closes_when_its_token_is_revoked(self, vera: User) -> None:
        watcher = await opened("a", with_token(await database_sync_to_async(token_of)(vera)))
        await database_sync_to_async(lambda: tokens.revoke(ApiToken.objects.get()))()
        assert await watcher.is_closed_with() == 4403

    async def test_closes_when_its_session_is_signed_out(self, vera: User) -> None:
        client = await database_sync_to_async(client_of)(vera)
        watcher = await opened("a", with_session(client.cookies[settings.SESSION_COOKIE_NAME].value, ORIGIN))
        await database_sync_to_async(client.post)("/sign-out/")
        assert await watcher.is_closed_with() == 4403

    async def test_closes_when_its_session_is_ended_in_another_browser(self, vera: User) -> None:
        phone = await database_sync_to_async(client_of)(vera)
        row = await BrowserSession.objects.aget()
        watcher = await opened("a", with_session(phone.cookies[settings.SESSION_COOKIE_NAME].value, ORIGIN))
        laptop = await database_sync_to_async(client_of)(vera)
        await database_sync_to_async(laptop.post)(f"/settings/sessions/{row.pk}/end/")
        assert await watcher.is_closed_with() == 4403

    async def test_stays_open_while_its_person_may_watch(self, vera: User) -> None:
        token = await database_sync_to_async(token_of)(vera)
        watcher = await opened("a", with_token(token))
        owner = await database_sync_to_async(lambda: principal_of(make_owner()))()
        await database_sync_to_async(
            lambda: people.change_role(owner, vera.memberships.get(), Role.CONTRIBUTOR)
        )()
        publish(run_topic("a"), event("a"))
        assert await watcher.hears() == event("a")
        assert await watcher.hears_nothing()
        await watcher.closes()


def asked(method: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": "/api/v1/runs/", "headers": [HOST, *headers]}


class TestPrincipalOfScope:
    async def test_a_cookie_alone_may_read_but_not_write(self, vera: User) -> None:
        cookie = (
            b"cookie",
            f"{settings.SESSION_COOKIE_NAME}={await database_sync_to_async(session_of)(vera)}".encode(),
        )
        assert await principal_of_scope(asked("GET", cookie)) is not None
        assert await principal_of_scope(asked("PUT", cookie)) is None
        assert await principal_of_scope(asked("PUT", cookie, FOREIGN)) is None
        assert await principal_of_scope(asked("PUT", cookie, ORIGIN)) is not None

    async def test_a_wrong_token_is_not_rescued_by_a_good_cookie(self, vera: User) -> None:
        cookie = (
            b"cookie",
            f"{settings.SESSION_COOKIE_NAME}={await database_sync_to_async(session_of)(vera)}".encode(),
        )
        assert await principal_of_scope(asked("GET", cookie, (b"authorization", b"Bearer th_wrong"))) is None

    async def test_ends_with_membership_and_token(self, vera: User) -> None:
        token = await database_sync_to_async(token_of)(vera)
        header = (b"authorization", f"bearer {token}".encode())
        assert await principal_of_scope(asked("GET", header)) is not None
        await database_sync_to_async(Membership.objects.all().delete)()
        assert await principal_of_scope(asked("GET", header)) is None
        await database_sync_to_async(ApiToken.objects.all().delete)()
        assert await principal_of_scope(asked("GET", header)) is None

    @pytest.mark.parametrize("value", ["", "Basic dXNlcg==", "Bearer", "Bearer  "])
    async def test_other_headers_hold_no_token(self, value: str) -> None:
        assert bearer(asked("GET", (b"authorization", value.encode()))) is None


@pytest.fixture
def trusted(settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://hub.public.example"]


class TestSameOrigin:
    @pytest.mark.parametrize(
        "origin", ["http://hub.example:8000", "https://hub.example:8000", "https://hub.public.example"]
    )
    def test_is_our_host_or_a_trusted_one(self, origin: str, trusted: None) -> None:
        assert same_origin(asked("GET", (b"origin", origin.encode())))

    @pytest.mark.parametrize(
        "origin",
        [
            "",
            "null",
            "http://hub.example",
            "http://hub.example:8001",
            "http://hub.example:8000.evil.example",
            "http://[",
            "file://",
        ],
    )
    def test_is_nothing_else(self, origin: str, trusted: None) -> None:
        assert not same_origin(asked("GET", (b"origin", origin.encode())))
