"""The answers' exact shapes, and what they cost."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.hub import Hub
from tests.mlflow.raw import MlflowCaller
from tests.people import make_contributor, make_workspace
from tracking.callers import Caller
from tracking.mlflow import runs
from tracking.models import Metric
from workspaces.states import Role

NOW = 1_700_000_000_000


def points(count: int, key: str = "loss") -> list[dict[str, Any]]:
    return [
        {"key": key, "value": float(step), "timestamp": NOW + step, "step": step} for step in range(count)
    ]


class TestShapes:
    async def test_of_an_experiment(self, me: MlflowCaller) -> None:
        created = await me.call("experiments/create", {"name": "birds", "tags": [{"key": "a", "value": "1"}]})
        result = (await me.call("experiments/get", created))["experiment"]
        assert isinstance(created["experiment_id"], str)
        assert result.pop("creation_time") <= result.pop("last_update_time")
        assert result == {
            "experiment_id": created["experiment_id"],
            "name": "birds",
            "lifecycle_stage": "active",
            "artifact_location": f"mlflow-artifacts:/{created['experiment_id']}",
            "tags": [{"key": "a", "value": "1"}],
        }

    async def test_of_a_run_that_has_said_nothing_yet(self, me: MlflowCaller) -> None:
        args = {"experiment_id": "0", "run_name": "night", "start_time": NOW, "user_id": "someone"}
        created = (await me.call("runs/create", args))["run"]
        info = created["info"]
        address = info.pop("artifact_uri")
        assert info == {
            "run_id": info["run_id"],
            "run_uuid": info["run_id"],
            "run_name": "night",
            "experiment_id": "0",
            "user_id": "carl",
            "status": "RUNNING",
            "start_time": NOW,
            "lifecycle_stage": "active",
        }
        assert re.fullmatch(rf"mlflow-artifacts:/\d+/{info['run_id']}/artifacts", address)
        assert created["data"] == {"tags": [{"key": "mlflow.runName", "value": "night"}]}
        assert (created["inputs"], created["outputs"]) == ({}, {})

    async def test_of_nothing(self, me: MlflowCaller) -> None:
        assert await me.call("runs/search", {"experiment_ids": ["0"]}) == {}
        assert await me.call("experiments/search", {"filter": "name = 'none'"}) == {}
        run = await me.run()
        assert await me.call("metrics/get-history", {"run_id": run, "metric_key": "none"}) == {}
        assert await me.call("runs/set-tag", {"run_id": run, "key": "a", "value": "1"}) == {}

    async def test_of_an_error(self, me: MlflowCaller) -> None:
        answer = await me.send("runs/get", {"run_id": "f" * 32})
        assert answer.status_code == 404
        assert answer.json() == {
            "error_code": "RESOURCE_DOES_NOT_EXIST",
            "message": f"Run with id={'f' * 32} not found",
        }


class TestData:
    async def test_that_runs_read_is_summed_up_by_experiment(self, me: MlflowCaller) -> None:
        run = await me.run()
        dataset = {"name": "digits", "digest": "0f", "source_type": "http", "source": "https://example.org"}
        args = {
            "run_id": run,
            "datasets": [{"tags": [{"key": "mlflow.data.context", "value": "training"}], "dataset": dataset}],
        }
        for _ in range(2):
            await me.call("runs/log-inputs", args)
        results = (await me.call("runs/get", {"run_id": run}))["run"]
        assert results["inputs"]["dataset_inputs"] == args["datasets"]
        experiment = results["info"]["experiment_id"]
        summary = {"experiment_id": experiment, "name": "digits", "digest": "0f", "context": "training"}
        assert await me.call("experiments/search-datasets", {"experiment_ids": [experiment]}) == {
            "dataset_summaries": [summary]
        }

    @pytest.mark.parametrize(
        "wrong", [{"name": ""}, {"name": "n" * 501}, {"digest": "d" * 37}, {"source": None}]
    )
    async def test_that_is_none_is_refused_whole(self, me: MlflowCaller, wrong: dict[str, Any]) -> None:
        run = await me.run()
        good = {"name": "digits", "digest": "0f", "source_type": "http", "source": "https://example.org"}
        result = await me.expect_error(
            "runs/log-inputs", {"run_id": run, "datasets": [{"dataset": good}, {"dataset": good | wrong}]}
        )
        assert (result.code, f"datasets[1].dataset.{next(iter(wrong))}" in result.message) == (
            "INVALID_PARAMETER_VALUE",
            True,
        )
        assert (await me.call("runs/get", {"run_id": run}))["run"]["inputs"] == {}


class TestModelsOfOlderClients:
    async def test_are_entries_of_a_tag(self, me: MlflowCaller) -> None:
        run = await me.run()
        model = {
            "run_id": run,
            "artifact_path": "model",
            "utc_time_created": "2026-01-01",
            "flavors": {"sklearn": {}},
        }
        for _ in range(2):
            await me.call("runs/log-model", {"run_id": run, "model_json": json.dumps(model)})
        results = (await me.call("runs/get", {"run_id": run}))["run"]["data"]["tags"]
        value = next(tag["value"] for tag in results if tag["key"] == "mlflow.log-model.history")
        assert json.loads(value) == [model, model]

    @pytest.mark.parametrize("text", ["{", "[]", "{}", '{"run_id": "x"}'])
    async def test_are_refused_where_they_say_too_little(self, me: MlflowCaller, text: str) -> None:
        result = await me.expect_error("runs/log-model", {"run_id": await me.run(), "model_json": text})
        assert result.code == "INVALID_PARAMETER_VALUE"


class TestHistories:
    async def test_in_bulk_are_by_run_and_then_by_time(self, me: MlflowCaller) -> None:
        one, two = sorted([await me.run(), await me.run()])
        for run in (one, two):
            await me.call("runs/log-batch", {"run_id": run, "metrics": points(3)})
        result = (await me.call("metrics/get-history-bulk", {"run_id": [two, one], "metric_key": "loss"}))[
            "metrics"
        ]
        assert [(item["run_id"], item["step"]) for item in result] == [
            (run, step) for run in (one, two) for step in range(3)
        ]
        few = await me.call(
            "metrics/get-history-bulk", {"run_id": [two, one], "metric_key": "loss", "max_results": 4}
        )
        assert len(few["metrics"]) == 4

    @pytest.mark.parametrize("root", ["/api/2.0", "/ajax-api/2.0"])
    async def test_of_an_interval_keep_the_first_and_the_last_point(
        self, me: MlflowCaller, root: str
    ) -> None:
        run = await me.run()
        await me.call("runs/log-batch", {"run_id": run, "metrics": points(1000)})
        path = f"{root}/mlflow/metrics/get-history-bulk-interval"
        result = await me.call(path, {"run_ids": run, "metric_key": "loss", "max_results": 10}, "GET")
        assert [item["step"] for item in result["metrics"]] == [
            0,
            100,
            200,
            300,
            400,
            500,
            600,
            700,
            800,
            999,
        ]
        args = {"run_ids": run, "metric_key": "loss", "start_step": 10, "end_step": 13}
        assert [item["step"] for item in (await me.call(path, args, "GET"))["metrics"]] == [10, 11, 12, 13]

    @pytest.mark.parametrize(
        "wrong",
        [{"start_step": 1}, {"start_step": 2, "end_step": 1}, {"max_results": 0}, {"max_results": 2501}],
    )
    async def test_of_an_interval_that_is_none_are_refused(
        self, me: MlflowCaller, wrong: dict[str, int]
    ) -> None:
        result = await me.expect_error(
            "metrics/get-history-bulk-interval",
            {"run_ids": await me.run(), "metric_key": "loss", **wrong},
            "GET",
        )
        assert result.code == "INVALID_PARAMETER_VALUE"


class TestUnknownCalls:
    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("/api/3.0/mlflow/traces/search", "does not offer traces"),
            ("/api/2.0/mlflow/gateway/endpoints/list", "does not offer the AI gateway"),
            ("/api/3.0/mlflow/scorers/list", "does not offer scorers"),
            ("/api/4.0/mlflow/traces/x", "does not offer traces"),
            ("/ajax-api/2.0/mlflow/upload-artifact", "There is no POST"),
            ("/ajax-api/9.9/whatever", "There is no POST"),
        ],
    )
    async def test_are_answered_as_by_mlflow(self, me: MlflowCaller, path: str, words: str) -> None:
        result = await me.expect_error(path, {}, "POST")
        assert (result.status, result.code) == (404, "ENDPOINT_NOT_FOUND")
        assert words in result.message

    async def test_of_a_known_address_by_another_method_name_the_right_one(self, me: MlflowCaller) -> None:
        answer = await me.send("/api/2.0/mlflow/runs/get", {}, "POST")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


class TestCosts:
    async def test_runs_with_all_they_said_take_as_many_queries_whether_few_or_many(
        self, me: MlflowCaller
    ) -> None:
        args = {
            "metrics": points(1),
            "params": [{"key": "lr", "value": "1"}],
            "tags": [{"key": "a", "value": "1"}],
        }
        for _ in range(3):
            await me.call("runs/log-batch", {"run_id": await me.run(), **args})
        few = await sync_to_async(queries)()
        for _ in range(20):
            await me.call("runs/log-batch", {"run_id": await me.run(), **args})
        assert await sync_to_async(queries)() == few

    async def test_what_is_logged_by_many_at_once_is_all_there(self, me: MlflowCaller) -> None:
        run = await me.run()
        args = [{"run_id": run, **point} for point in points(50)]
        tag = {"key": "a", "value": "1"}
        batches = [
            {"run_id": run, "metrics": points(10, f"m{number}"), "tags": [tag]} for number in range(10)
        ]
        await asyncio.gather(
            *(me.call("runs/log-metric", item) for item in args),
            *(me.call("runs/log-batch", item) for item in batches),
        )
        counts = {metric.key: metric.count async for metric in Metric.objects.filter(run_id=run)}
        assert counts == {"loss": 50, **{f"m{number}": 10 for number in range(10)}}

    async def test_of_two_who_say_the_same_param_one_is_believed(self, me: MlflowCaller) -> None:
        run = await me.run()
        answers = await asyncio.gather(
            *(
                me.send("runs/log-parameter", {"run_id": run, "key": "lr", "value": str(number)})
                for number in range(4)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]

    async def test_experiments_made_at_once_under_one_name_are_one(self, me: MlflowCaller) -> None:
        answers = await asyncio.gather(*(me.send("experiments/create", {"name": "birds"}) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
        codes = {answer.json().get("error_code") for answer in answers}
        assert codes == {None, "RESOURCE_ALREADY_EXISTS"}


def queries() -> int:
    user = make_contributor()
    caller = Caller(make_workspace(), Role.CONTRIBUTOR, user)
    with CaptureQueriesContext(connection) as captured:
        results = runs.search_runs(caller, {"experiment_ids": ["0"], "filter": "metrics.loss >= 0"})
    assert results["runs"][0]["data"]["params"]
    return len(captured)


@pytest.mark.slow
class TestOnTheWire:
    def test_an_answer_leaves_in_one_write(self, hub: Hub) -> None:
        """Of two writes a client acknowledges the first late: some 45 ms for nothing."""
        with hub.client() as api:
            run = api.post("/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}).json()["run"]["info"][
                "run_id"
            ]
        body = json.dumps({"run_id": run, "key": "loss", "value": 1.0, "timestamp": NOW}).encode()
        head = (
            "POST /api/2.0/mlflow/runs/log-metric HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\n"
            f"Authorization: Bearer {hub.owner_token()}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", hub.port), 10) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(20):
                line.sendall(head.encode() + body)
                answer = line.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200")
                assert answer.endswith(b"\r\n\r\n{}")
