from __future__ import annotations

import hashlib
import os

import httpx
import pytest
from asgiref.sync import sync_to_async

from jobs.logs import log_store
from jobs.models import AttemptNode
from tests.jobs.builders import ended
from tests.jobs.raw import (
    LOG,
    Upload,
    bearing,
    claimed,
    contributor,
    enrolled,
    other_token,
    packed,
    stranger_token,
)
from tests.people import make_viewer, token_of
from trainhub_launch.report import AttemptFact, OutputFile
from trainhub_launch.states import Phase

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


class TestLogs:
    async def test_by_range_with_size_and_whether_it_is_all(self, client: httpx.AsyncClient) -> None:
        alpha, _ = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        log_store.append(run.pk, 1, LOG, 0, b"\xff\x00one\ntwo\n")
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{LOG}?offset=2&limit=4", headers=headers)
        assert answer.content == b"one\n"
        assert (answer.headers["x-log-size"], answer.headers["x-log-complete"]) == ("10", "false")
        log_store.seal(run.pk, 1, {LOG: 10})
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{LOG}?offset=10", headers=headers)
        assert (answer.content, answer.headers["x-log-complete"]) == (b"", "true")

    async def test_as_a_file_that_no_browser_will_run(self, client: httpx.AsyncClient) -> None:
        alpha, _ = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        log_store.append(run.pk, 1, "logs/deep/x.html", 0, b"<script>")
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/logs/deep/x.html?download=1", headers=headers)
        assert answer.headers["content-disposition"] == 'attachment; filename="x.html"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]

    async def test_a_log_that_is_not_there_is_no_file(self, client: httpx.AsyncClient) -> None:
        alpha, _ = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/logs/none.txt?download=1", headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (404, "No such log in this attempt.")

    @pytest.mark.parametrize("query", ["offset=-1", "offset=x", "limit=1e9", "attempt=99999999999"])
    async def test_a_number_that_is_none_is_named(self, client: httpx.AsyncClient, query: str) -> None:
        alpha, _ = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{LOG}?{query}", headers=headers)
        assert answer.status_code == 400
        assert query.split("=", maxsplit=1)[0] in answer.json()["detail"]

    async def test_people_outside_the_workspace_see_no_run(self, client: httpx.AsyncClient) -> None:
        alpha, _ = await enrolled()
        who, _ = await contributor()
        run = await claimed(who, alpha)
        log_store.append(run.pk, 1, LOG, 0, b"secret")
        for make in (other_token, stranger_token):
            headers = bearing(await sync_to_async(make)())
            answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{LOG}", headers=headers)
            assert answer.status_code in (401, 404)
            assert b"secret" not in answer.content

    async def test_a_viewer_reads(self, client: httpx.AsyncClient) -> None:
        alpha, _ = await enrolled()
        who, _ = await contributor()
        run = await claimed(who, alpha)
        log_store.append(run.pk, 1, LOG, 0, b"hello")
        token = await sync_to_async(lambda: token_of(make_viewer()))()
        answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{LOG}", headers=bearing(token))
        assert answer.content == b"hello"

    @pytest.mark.parametrize("name", ["..%2f..%2fsizes.json", "%2e%2e/x", "a%00b", "a%5Cb"])
    async def test_a_name_that_leads_elsewhere_is_refused(self, client: httpx.AsyncClient, name: str) -> None:
        alpha, _ = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        for query in ("", "?download=1"):
            answer = await client.get(f"/api/v1/runs/{run.pk}/logs/{name}{query}", headers=headers)
            assert answer.status_code in (400, 404)


class TestOutputs:
    async def test_are_streamed_with_ranges(self, client: httpx.AsyncClient) -> None:
        alpha, node_headers = await enrolled()
        who, headers = await contributor()
        run = await claimed(who, alpha)
        data = os.urandom(5000)
        sha256 = hashlib.sha256(data).hexdigest()
        await Upload(client, f"/api/v1/uploads/{sha256}", node_headers, data).put(0, 5000)
        fact = AttemptFact(
            run.pk,
            1,
            Phase.DONE,
            phase_at={"done": 1.0},
            members=(ended(0),),
            outputs=(OutputFile("a b/model.pt", 5000, sha256),),
        )
        await client.post("/api/v1/node/report/", headers=node_headers, content=packed(fact))
        url = f"/api/v1/runs/{run.pk}/outputs/a%20b/model.pt"
        assert (await client.get(url, headers=headers)).content == data
        part = await client.get(url, headers={**headers, "Range": "bytes=100-199"})
        assert (part.status_code, part.content) == (206, data[100:200])
        assert (await client.get(f"{url}x", headers=headers)).status_code == 404
        assert (await sync_to_async(AttemptNode.objects.get)()).settled_at is not None
