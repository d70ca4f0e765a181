from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings as configured

from tests.tracking.artifacts.raw import (
    MPU,
    LoggedRunClient,
    limited_disk,
    logged_run_client,
    stored_files,
)
from tracking.artifacts import multipart, uploads
from tracking.artifacts.body_writer import StoredBlob
from workspaces.stored_files import resumable

pytestmark = pytest.mark.django_db(transaction=True)
PART = 5 * 2**20


@dataclass(frozen=True)
class Sending:
    """One file on its way up, in parts of 5 MiB, as MLflow's client sends it."""

    client: httpx.AsyncClient
    at: LoggedRunClient
    content: bytes
    id: str
    credentials: list[dict[str, Any]]

    async def part(
        self, number: int, content: bytes | None = None, secret: str | None = None
    ) -> httpx.Response:
        body = self.credentials[number - 1]
        assert body["part_number"] == number
        piece = self.content[(number - 1) * PART : number * PART] if content is None else content
        headers = body["headers"] if secret is None else {multipart.HEADER: secret}
        return await self.client.put(body["url"], headers=headers, content=piece)

    async def complete(self, *responses: httpx.Response) -> httpx.Response:
        parts = [
            {"part_number": n, "etag": item.headers["etag"], "url": ""} for n, item in enumerate(responses, 1)
        ]
        return await self.ask("complete", parts=parts)

    async def ask(self, verb: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        body = {"path": "/home/me/big.bin", "upload_id": self.id, **more}
        return await self.client.post(
            f"{MPU}/{verb}/{self.at.root}/out", headers=headers or self.at.contributor, json=body
        )

    async def stored(self) -> httpx.Response:
        return await self.client.get(f"{self.at.url}/out/big.bin", headers=self.at.viewer)


async def started(client: httpx.AsyncClient, size: int = 2 * PART + 77) -> Sending:
    at, content = await logged_run_client(), os.urandom(size)
    body = {"path": "/home/me/big.bin", "num_parts": -(-size // PART)}
    answer = await client.post(f"{MPU}/create/{at.root}/out", headers=at.contributor, json=body)
    assert answer.status_code == 200, answer.text
    return Sending(client, at, content, answer.json()["upload_id"], answer.json()["credentials"])


class TestUpload:
    async def test_parts_in_any_order_become_the_file(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        third, first, second = await sending.part(3), await sending.part(1), await sending.part(2)
        assert (await sending.stored()).status_code == 404
        assert (await sending.complete(first, second, third)).json() == {}
        assert (await sending.stored()).content == sending.content
        assert not list(part_files(sending))

    async def test_a_part_that_was_spoilt_is_sent_again(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        first, third, spoilt = (
            await sending.part(1),
            await sending.part(3),
            await sending.part(2, b"half of it"),
        )
        second = await sending.part(2)
        assert spoilt.headers["etag"] != second.headers["etag"]
        assert (await sending.complete(first, second, third)).status_code == 200
        assert (await sending.stored()).content == sending.content

    async def test_told_complete_twice_is_complete(self, client: httpx.AsyncClient) -> None:
        sending = await started(client, 10)
        part = await sending.part(1)
        assert [(await sending.complete(part)).status_code for _ in range(2)] == [200, 200]

    async def test_told_complete_by_several_at_once_is_complete(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        parts = [await sending.part(number) for number in (1, 2, 3)]
        answers = await asyncio.gather(*(sending.complete(*parts) for _ in range(4)))
        assert [answer.status_code for answer in answers] == [200] * 4
        assert (await sending.stored()).content == sending.content

    async def test_aborted_while_it_is_completed_is_said_to_be(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def aborted_first(upload: uploads.PartsUpload) -> StoredBlob:
            uploads.delete_upload(upload)
            return join(upload)

        join = uploads.join_parts
        monkeypatch.setattr(uploads, "join_parts", aborted_first)
        sending = await started(client)
        answer = await sending.complete(*[await sending.part(number) for number in (1, 2, 3)])
        assert (answer.status_code, "aborted" in answer.json()["message"]) == (404, True)
        assert (await sending.stored()).status_code == 404

    async def test_that_lacks_a_part_names_it_and_can_go_on(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        first, third = await sending.part(1), await sending.part(3)
        refused = await sending.complete(first, third, third)
        assert (refused.status_code, refused.json()["message"]) == (
            400,
            "parts: 2 are incomplete; send them again, then complete the upload.",
        )
        assert (await sending.complete(first, await sending.part(2), third)).status_code == 200

    async def test_aborted_leaves_nothing(self, client: httpx.AsyncClient) -> None:
        sending, before = await started(client), stored_files()
        await sending.part(1)
        assert (await sending.ask("abort")).status_code == 200
        assert not folder(sending).exists()
        assert (await sending.part(2)).status_code == 404
        assert stored_files() == before

    async def test_forgotten_goes_after_a_week(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        await sending.part(1)
        uploads.sweep(time.time() + resumable.KEEP_UNFINISHED_S - 60)
        assert folder(sending).exists()
        uploads.sweep(time.time() + resumable.KEEP_UNFINISHED_S + 60)
        assert not folder(sending).exists()


class TestBadInput:
    async def test_a_part_needs_the_secret_of_its_upload(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        assert (await sending.part(1, secret="guessed")).status_code == 404
        assert not list(part_files(sending))

    async def test_a_part_that_was_not_asked_for_is_refused(self, client: httpx.AsyncClient) -> None:
        sending = await started(client)
        body = sending.credentials[0]
        answer = await client.put(body["url"][:-1] + "4", headers=body["headers"], content=b"x")
        assert (answer.status_code, answer.json()["message"]) == (400, "The upload has the parts 1 to 3.")

    async def test_another_workspace_cannot_complete_or_abort(self, client: httpx.AsyncClient) -> None:
        sending = await started(client, 10)
        await sending.part(1)
        for verb in ("complete", "abort"):
            assert (await sending.ask(verb, sending.at.other, parts=[])).status_code == 404
            assert (await sending.ask(verb, sending.at.viewer, parts=[])).status_code == 403
        assert folder(sending).exists()

    async def test_an_upload_cannot_be_completed_under_another_name(self, client: httpx.AsyncClient) -> None:
        sending = await started(client, 10)
        part = await sending.part(1)
        body = [{"part_number": 1, "etag": part.headers["etag"]}]
        assert (await sending.ask("complete", path="other.bin", parts=body)).status_code == 404

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            (None, "give a list of {part_number, etag}"),
            (["1"], "give a list of {part_number, etag}"),
            ([{"part_number": "first"}], "part_number must be a whole number"),
            ([{"etag": "0"}], "part_number must be a whole number"),
            ([{"part_number": 2}], "name each of the parts 1 to 1 once"),
            ([], "name each of the parts 1 to 1 once"),
        ],
    )
    async def test_a_list_of_parts_that_is_none_is_named(
        self, parts: object, words: str, client: httpx.AsyncClient
    ) -> None:
        sending = await started(client, 10)
        part = await sending.part(1)
        answer = await sending.ask("complete", parts=parts)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
        assert words in answer.json()["message"]
        assert (await sending.complete(part)).status_code == 200

    async def test_a_part_of_a_complete_upload_is_refused(self, client: httpx.AsyncClient) -> None:
        sending = await started(client, 10)
        await sending.complete(await sending.part(1))
        answer = await sending.part(1, b"something else")
        assert (answer.status_code, answer.json()["message"]) == (400, "The upload is complete.")
        assert (await sending.stored()).content == sending.content

    @pytest.mark.parametrize("upload", ["../parts", "f" * 32, "../" * 10 + "ab"])
    async def test_an_upload_that_is_not_there_cannot_be_aborted(
        self, upload: str, client: httpx.AsyncClient
    ) -> None:
        sending = await started(client, 10)
        answer = await sending.ask("abort", upload_id=upload)
        assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert "start it again" in answer.json()["message"]
        assert folder(sending).exists()

    @pytest.mark.parametrize("parts", [0, -1, 50_001, "x", None, 1.5])
    async def test_a_number_of_parts_that_is_none_is_named(
        self, parts: object, client: httpx.AsyncClient
    ) -> None:
        at = await logged_run_client()
        body = {"path": "a", "num_parts": parts}
        answer = await client.post(f"{MPU}/create/{at.root}", headers=at.contributor, json=body)
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("num_parts: ")

    @pytest.mark.parametrize("path", ["", "..", "a\0b", "/"])
    async def test_a_name_that_leads_elsewhere_is_refused(self, path: str, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        answer = await client.post(
            f"{MPU}/create/{at.root}", headers=at.contributor, json={"path": path, "num_parts": 1}
        )
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")

    async def test_what_the_disk_cannot_hold_is_refused_and_an_earlier_try_stays(
        self, client: httpx.AsyncClient
    ) -> None:
        sending = await started(client)
        first = await sending.part(1)
        with limited_disk(2**20):
            answer = await sending.part(1, os.urandom(PART))
        assert (answer.status_code, answer.json()["error_code"]) == (507, "RESOURCE_EXHAUSTED")
        others = [await sending.part(2), await sending.part(3)]
        assert (await sending.complete(first, *others)).status_code == 200
        assert (await sending.stored()).content == sending.content

    async def test_a_disk_that_fills_while_parts_are_joined_keeps_them_for_a_second_try(
        self, client: httpx.AsyncClient
    ) -> None:
        sending = await started(client)
        parts = [await sending.part(number) for number in (1, 2, 3)]
        before = stored_files()
        with limited_disk(6 * 2**20):
            assert (await sending.complete(*parts)).status_code == 507
        assert stored_files() == before
        assert (await sending.complete(*parts)).status_code == 200

    async def test_all_parts_together_stay_below_the_limit(
        self, client: httpx.AsyncClient, settings: Any
    ) -> None:
        settings.MAX_UPLOAD_BYTES = PART + 10
        sending = await started(client)
        assert (await sending.part(1)).status_code == 200
        assert (await sending.part(2)).status_code == 413


def folder(sending: Sending) -> Path:
    return Path(configured.DATA_DIR) / "uploads" / "parts" / sending.id


def part_files(sending: Sending) -> list[Path]:
    return list(folder(sending).glob("*.part"))
