from __future__ import annotations

import csv
import io
import math

import httpx
import pytest
from asgiref.sync import sync_to_async
from starlette.applications import Starlette

from jobs.models import Run
from tests.people import make_viewer, make_workspace, token_of
from tests.tracking.builders import logged_run
from tests.tracking.curves.builders import log
from tracking.curves import download
from tracking.curves.lines import start_ms

pytestmark = pytest.mark.django_db(transaction=True)


async def fetched(run: Run, query: str = "", *, token: str | None = None) -> httpx.Response:
    bearer = await sync_to_async(lambda: token_of(make_viewer()))() if token is None else token
    transport = httpx.ASGITransport(Starlette(routes=download.routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return await client.get(f"/api/v1/runs/{run.pk}/metrics.csv{query}", headers=headers)


def rows(answer: httpx.Response) -> list[list[str]]:
    return list(csv.reader(io.StringIO(answer.text)))


class TestCsv:
    @pytest.mark.parametrize("key", ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)"])
    async def test_runs_no_formula_in_a_spreadsheet(self, key: str) -> None:
        """MLflow's clients may name no curve so, but TensorBoard's writers do as they like."""
        run = await sync_to_async(logged_run)()
        await sync_to_async(log)(run, **{key: [1.0]})
        assert rows(await fetched(run))[1][0] == f"'{key}"

    async def test_holds_every_point_of_every_metric_as_it_was_logged(self) -> None:
        run = await sync_to_async(logged_run)()
        await sync_to_async(log)(run, loss=[0.1, math.nan, -math.inf], **{'a "b", c': [1e-300]})
        answer = await fetched(run)
        began = start_ms(run)
        at = [f"{(began + ms) // 1000}.{(began + ms) % 1000:03d}" for ms in (0, 1000, 2000)]
        assert rows(answer) == [
            ["metric", "step", "time", "value"],
            ['a "b", c', "0", at[0], "1e-300"],
            ["loss", "0", at[0], "0.1"],
            ["loss", "1", at[1], "NaN"],
            ["loss", "2", at[2], "-Infinity"],
        ]
        assert answer.headers["content-disposition"] == f'attachment; filename="run-{run.number}-metrics.csv"'

    async def test_is_not_thinned(self) -> None:
        run = await sync_to_async(logged_run)()
        await sync_to_async(log)(run, loss=range(45_000))
        assert [row[1] for row in rows(await fetched(run, "?keys=loss"))[1:]] == [
            str(step) for step in range(45_000)
        ]

    @pytest.mark.parametrize("limit", ["KEYS_AT_ONCE", "POINTS_AT_ONCE"])
    async def test_of_more_curves_than_are_read_at_once_holds_each_once(
        self, limit: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(download, limit, 2)
        run = await sync_to_async(logged_run)()
        await sync_to_async(log)(run, a=[1.0], b=[2.0], c=[3.0, 4.0, 5.0], d=[6.0], e=[7.0])
        answer = await fetched(run)
        assert [(row[0], float(row[3])) for row in rows(answer)[1:]] == [
            *(("a", 1.0), ("b", 2.0)),
            *(("c", 3.0), ("c", 4.0), ("c", 5.0)),
            *(("d", 6.0), ("e", 7.0)),
        ]

    async def test_names_a_wrong_parameter(self) -> None:
        run = await sync_to_async(logged_run)()
        answer = await fetched(run, "?metric=loss")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "metric")

    async def test_is_for_the_members_of_the_workspace(self) -> None:
        foreign = await sync_to_async(lambda: logged_run(workspace=make_workspace("other")))()
        assert (await fetched(foreign)).status_code == 404
        assert (await fetched(foreign, token="")).status_code == 401
