from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import httpx
import pytest
from channels.db import database_sync_to_async
from django.test import Client
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from workspaces.authentication import login_throttle, sign_in_gate
from workspaces.authentication.sign_in_gate import SignInGate
from workspaces.models import SignInAttempts

pytestmark = pytest.mark.django_db(transaction=True)
ATTACKED = "10.0.0.9"
TOKEN = re.compile(r"\b[a-zA-Z0-9]{64}\b")
URLENCODED = "application/x-www-form-urlencoded"
FORM = {
    "username": ' Vera & "Co" ',
    "password": "a guess",
    "next": "/runs/?q=<a>",
    "csrfmiddlewaretoken": "A" * 64,
}


async def reached(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for Django: answers with the body that it was given."""
    await PlainTextResponse(await Request(scope, receive).body())(scope, receive, send)


def fill_installation() -> None:
    """Leaves no attempt of the installation free for the next 20 seconds."""
    count = login_throttle.INSTALLATION_BURST + 20 * login_throttle.INSTALLATION_PER_S
    SignInAttempts.objects.create(
        pk=login_throttle._keys("", "")[2], count=count, last_at=time.time(), known_until=0
    )


def browser(app: Any = reached, address: str = ATTACKED) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(SignInGate(app), client=(address, 1234))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def send(address: str = ATTACKED, path: str = "/sign-in/", **request: Any) -> httpx.Response:
    async with browser(address=address) as client:
        return await client.post(path, **request or {"data": FORM})


class TestPeace:
    async def test_gives_the_form_on_unchanged(self) -> None:
        answer = await send(content=b"username=vera&password=%C3%A4", headers={"Content-Type": "x/y"})
        assert (answer.status_code, answer.content) == (200, b"username=vera&password=%C3%A4")

    async def test_a_form_of_more_than_64_kib_is_refused(self) -> None:
        assert (await send(data={"username": "x" * 70_000})).status_code == 413

    async def test_few_are_compared_at_once_and_too_many_asked_to_come_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sign_in_gate, "MAX_WAITING", 3)
        inside, most, full, go_on = 0, 0, asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            if inside == sign_in_gate.SIGN_INS_AT_ONCE:
                full.set()
            await go_on.wait()
            inside -= 1
            await PlainTextResponse("compared")(scope, receive, send)

        async with browser(slow) as client:
            attempts = [asyncio.ensure_future(client.post("/sign-in/", data=FORM)) for _ in range(8)]
            done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED, timeout=10)
            refused = done.pop().result()
            await asyncio.wait_for(full.wait(), 10)
            go_on.set()
            answers = await asyncio.gather(*attempts)
        assert most == sign_in_gate.SIGN_INS_AT_ONCE
        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 3
        assert "Many people are signing in at this moment. Wait 2 seconds" in refused.text


class TestAttack:
    @pytest.fixture(autouse=True)
    def full(self) -> None:
        fill_installation()

    async def test_the_page_is_that_of_django(self) -> None:
        by_gate = await send()
        by_django = await database_sync_to_async(
            lambda: Client(REMOTE_ADDR=ATTACKED).post("/sign-in/", FORM)
        )()
        assert by_gate.status_code == by_django.status_code == 429
        assert "Too many failed attempts. Wait" in by_gate.text
        assert by_gate.text.count("A" * 64) == 2
        assert "a guess" not in by_gate.text
        assert _without_numbers(by_gate.text) == _without_numbers(by_django.content.decode())
        assert by_gate.headers["Cache-Control"] == by_django.headers["Cache-Control"]
        assert by_gate.headers["X-Frame-Options"] == by_django.headers["X-Frame-Options"]
        assert 15 <= int(by_gate.headers["Retry-After"]) <= 21

    @pytest.mark.parametrize(
        "request_fields",
        [
            {"data": {}},
            {"data": {**FORM, "csrfmiddlewaretoken": '"><script>'}},
            {"files": {"username": (None, "vera")}},
            {
                "content": "&".join(["a=1"] * 2000),
                "headers": {"Content-Type": "application/x-www-form-urlencoded"},
            },
            {"content": b"username=%ff%00&username=\xff", "headers": {"Content-Type": "text/plain"}},
        ],
    )
    async def test_no_kind_of_form_passes(self, request_fields: dict[str, Any]) -> None:
        answer = await send(**request_fields)
        assert answer.status_code == 429
        assert "<script>" not in answer.text

    async def test_who_has_signed_in_from_the_address_before_passes(self) -> None:
        def signed_in() -> None:
            pair = login_throttle._keys("vera", "10.0.0.1")[0]
            SignInAttempts.objects.create(pk=pair, count=0, last_at=0, known_until=time.time() + 60)

        await database_sync_to_async(signed_in)()
        form = {**FORM, "username": " Vera "}
        assert (await send("10.0.0.1", data=form)).status_code == 200
        assert (await send("10.0.0.2", data=form)).status_code == 429

    async def test_nothing_is_counted_and_other_addresses_of_the_hub_are_open(self) -> None:
        def counts() -> list[Any]:
            return list(SignInAttempts.objects.values_list("pk", "count"))

        before = await database_sync_to_async(counts)()
        await send()
        assert await database_sync_to_async(counts)() == before
        assert (await send(path="/sign-in/forgot/")).status_code == 200
        async with browser() as client:
            assert (await client.get("/sign-in/")).status_code == 200


def _without_numbers(page: str) -> str:
    """The page without what differs between two answers: its CSRF token, and the seconds to wait."""
    return re.sub(r"Wait \d+ seconds", "Wait", TOKEN.sub("token", page))
