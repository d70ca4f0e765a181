from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async

from tests.people import make_contributor, token_of
from trainhub.body_limit import ANYBODYS_BYTES, LargeBodies

pytestmark = pytest.mark.django_db(transaction=True)
MEBIBYTE = b"x" * 2**20


async def reading(scope: Any, receive: Any, send: Any) -> None:
    """Answers with how much it was given, as Django does once it has stored the whole."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


async def sent(chunks: Iterable[bytes], **headers: str) -> Any:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    app: Any = ApplicationCommunicator(  # type: ignore[no-untyped-call]
        LargeBodies(reading), {"type": "http", "method": "POST", "path": "/", "headers": named}
    )
    for chunk in chunks:
        await app.send_input({"type": "http.request", "body": chunk, "more_body": True})
    await app.send_input({"type": "http.request", "body": b"", "more_body": False})
    await app.wait(5)
    return None if app.output_queue.empty() else (await app.receive_output(1))["status"]


@pytest.fixture
def carl() -> str:
    return f"Bearer {token_of(make_contributor())}"


@pytest.fixture(autouse=True)
def small_sources(settings: Any) -> None:
    settings.MAX_SNAPSHOT_BYTES = 4 * 2**20


class TestWhoMaySendMuch:
    async def test_anybody_may_send_a_form(self) -> None:
        assert await sent([b"name=x"], content_length="6") == 200
        assert await sent([], content_length=str(ANYBODYS_BYTES)) == 200

    async def test_nobody_is_refused_before_a_byte_is_read(self) -> None:
        assert await sent([MEBIBYTE] * 2, content_length=str(2 * 2**20)) == 401
        assert await sent([MEBIBYTE] * 2, transfer_encoding="chunked") == 401
        assert (
            await sent([MEBIBYTE] * 2, content_length=str(2 * 2**20), authorization="Bearer th_wrong") == 401
        )

    async def test_no_way_of_writing_the_length_passes(self, settings: Any) -> None:
        for length in ("0" * 30 + str(2 * 2**20), "9" * 20, "9" * 5000):
            assert await sent([MEBIBYTE] * 2, content_length=length) in (401, 413), length[:40]
        settings.MAX_SNAPSHOT_BYTES = 2**19
        assert await sent([MEBIBYTE] * 2, transfer_encoding="chunked") == 401

    async def test_a_member_may_send_a_source(self, carl: str) -> None:
        assert await sent([MEBIBYTE] * 4, content_length=str(4 * 2**20), authorization=carl) == 200
        assert await sent([MEBIBYTE] * 4, transfer_encoding="chunked", authorization=carl) == 200

    async def test_a_member_too_has_a_limit(self, carl: str) -> None:
        assert await sent([MEBIBYTE], content_length=str(6 * 2**20), authorization=carl) == 413
        assert await sent([MEBIBYTE] * 6, transfer_encoding="chunked", authorization=carl) is None

    async def test_the_token_must_still_hold(self, carl: str) -> None:
        await database_sync_to_async(lambda: make_contributor().memberships.all().delete())()
        assert await sent([MEBIBYTE] * 4, content_length=str(4 * 2**20), authorization=carl) == 401
