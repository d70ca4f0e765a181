"""What clients must not send, and what becomes of it: an error of MLflow's, and nothing half-written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mlflow.raw import ROOT, MlflowCaller, error_response
from tracking.mlflow import run_tags

INVALID = "INVALID_PARAMETER_VALUE"
NOW = 1_700_000_000_000
MANY_RUNS = [f"{number:032x}" for number in range(101)]


def metric(**changes: Any) -> dict[str, Any]:
    return {"key": "loss", "value": 0.5, "timestamp": NOW, "step": 0} | changes


class TestAMetric:
    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"key": None}, "key'"),
            ({"key": 7}, "key'"),
            ({"key": ""}, "key'"),
            ({"key": "a\x00b"}, "NUL"),
            ({"key": "a\nb"}, "Names may only contain"),
            ({"key": "/abs"}, "would resolve to"),
            ({"key": "a//b"}, "would resolve to"),
            ({"value": None}, "value'"),
            ({"value": "high"}, "valid double"),
            ({"value": True}, "valid double"),
            ({"value": [1]}, "valid double"),
            ({"timestamp": None}, "timestamp'"),
            ({"timestamp": -1}, "nonnegative"),
            ({"timestamp": 2**63}, "64 bits"),
            ({"timestamp": "noon"}, "timestamp'"),
            ({"step": 2**63}, "64 bits"),
            ({"step": -(2**63) - 1}, "64 bits"),
            ({"step": 1.5}, "step'"),
        ],
    )
    async def test_that_is_none_is_refused_by_its_field(
        self, me: MlflowCaller, wrong: dict[str, Any], words: str
    ) -> None:
        run = await me.run()
        for path, args in (
            ("runs/log-metric", {"run_id": run, **metric(**wrong)}),
            ("runs/log-batch", {"run_id": run, "metrics": [metric(), metric(**wrong)]}),
        ):
            result = await me.expect_error(path, args)
            assert (result.status, result.code) == (400, INVALID)
            assert words in result.message
        assert "metrics" not in (await me.call("runs/get", {"run_id": run}))["run"]["data"]

    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            ({"value": "NaN"}, "NaN"),
            ({"value": "Infinity"}, "Infinity"),
            ({"value": "-Infinity"}, "-Infinity"),
            ({"value": 3}, 3.0),
            ({"value": "1e-3"}, 0.001),
            ({"value": 2**70}, float(2**70)),
            ({"step": "5"}, 0.5),
            ({"step": -(2**63)}, 0.5),
            ({"key": "train/loss: a b"}, 0.5),
            ({"key": "größe"}, 0.5),
        ],
    )
    async def test_may_be_spelled_in_several_ways(
        self, me: MlflowCaller, sent: dict[str, Any], kept: Any
    ) -> None:
        run = await me.run()
        await me.call("runs/log-metric", {"run_id": run, **metric(**sent)})
        (stored,) = (await me.call("runs/get", {"run_id": run}))["run"]["data"]["metrics"]
        assert stored["value"] == kept
        assert stored["key"] == sent.get("key", "loss")


class TestABody:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"{", "not JSON"),
            (b"[]", "JSON object"),
            (b'{"run_id": "\xff"}', "not JSON"),
            (b'{"run_id": "\\ud800"}', "not JSON"),
            (b'{"run_id": 1e999}', "not JSON"),
            (b"{}", "run_id"),
            (b'{"run_id": ["a"]}', "run_id"),
        ],
    )
    async def test_that_cannot_be_read_is_refused(self, me: MlflowCaller, content: bytes, words: str) -> None:
        headers = {"Authorization": f"Bearer {me.token}"}
        for path in ("log-metric", "log-batch", "set-tag", "update"):
            result = error_response(
                await me.client.post(f"{ROOT}/runs/{path}", content=content, headers=headers)
            )
            assert (result.status, result.code) == (400, INVALID)
            assert words in result.message

    async def test_of_ten_megabytes_is_refused(self, me: MlflowCaller) -> None:
        run = await me.run()
        result = await me.expect_error(
            "runs/set-tag", {"run_id": run, "key": "big", "value": "x" * 10_000_000}
        )
        assert (result.status, result.code) == (413, INVALID)

    @pytest.mark.parametrize("path", ["runs/log-parameter", "runs/set-tag"])
    async def test_with_the_character_nul_is_refused(self, me: MlflowCaller, path: str) -> None:
        result = await me.expect_error(path, {"run_id": await me.run(), "key": "k", "value": "a\x00b"})
        assert (result.code, "NUL" in result.message) == (INVALID, True)

    @pytest.mark.parametrize(
        "wrong", [{"metrics": "all"}, {"metrics": [1]}, {"params": {"a": 1}}, {"tags": [[]]}]
    )
    async def test_with_something_else_than_lists_is_refused(
        self, me: MlflowCaller, wrong: dict[str, Any]
    ) -> None:
        value = next(iter(wrong.values()))
        result = await me.expect_error("runs/log-batch", {"run_id": await me.run(), **wrong})
        assert (result.code, next(iter(wrong)) in result.message) == (INVALID, True), value


class TestOtherQuestions:
    @pytest.mark.parametrize(
        ("path", "args"),
        [
            ("runs/search", {"experiment_ids": "0", "filter": "metrics.loss <"}),
            ("runs/search", {"experiment_ids": ["0"], "order_by": ["colour"]}),
            ("runs/search", {"experiment_ids": ["0"], "max_results": 0}),
            ("runs/search", {"experiment_ids": ["0"], "max_results": 50_001}),
            ("runs/search", {"experiment_ids": ["0"], "run_view_type": "SOME"}),
            ("runs/search", {"experiment_ids": ["a/b"]}),
            ("runs/search", {"experiment_ids": ["0"], "page_token": "eyJvZmZzZXQiOiAtMX0="}),
            ("runs/create", {"experiment_id": "0", "start_time": "noon"}),
            ("runs/create", {"experiment_id": "0", "start_time": 2**62}),
            (
                "runs/create",
                {"experiment_id": "0", "run_name": "a", "tags": [{"key": "mlflow.runName", "value": "b"}]},
            ),
            ("experiments/create", {"name": " "}),
            ("experiments/search", {"filter": "name = 5"}),
            ("experiments/search", {"filter": "creation_time LIKE 'x'"}),
            ("logged-models/search", {"experiment_ids": ["0"], "filter": "metrics.acc LIKE 'x'"}),
            ("logged-models/search", {"experiment_ids": ["0"], "order_by": [{"field_name": "params.lr"}]}),
            ("logged-models/search", {}),
            ("experiments/search-datasets", {"experiment_ids": []}),
        ],
    )
    async def test_are_refused_where_they_make_no_sense(
        self, me: MlflowCaller, path: str, args: dict[str, Any]
    ) -> None:
        result = await me.expect_error(path, args)
        assert (result.status, result.code) == (400, INVALID)

    @pytest.mark.parametrize(
        ("path", "args", "words"),
        [
            ("runs/search", {"experiment_ids": [0]}, "'experiment_ids'"),
            ("runs/search", {"experiment_ids": ["0"], "max_results": True}, "'max_results'"),
            ("runs/search", {"experiment_ids": ["0"], "max_results": [1]}, "'max_results'"),
            ("runs/search", {"experiment_ids": ["0"], "max_results": "1" * 41}, "'max_results'"),
            ("runs/search", {"experiment_ids": ["0"], "run_view_type": 4}, "ACTIVE_ONLY, DELETED_ONLY, ALL"),
            ("experiments/search-datasets", {"experiment_ids": ["1"] * 21}, "more than 20 experiment_ids"),
            ("metrics/get-history-bulk", {"run_id": MANY_RUNS, "metric_key": "loss"}, "at most 100 runs"),
        ],
    )
    async def test_are_refused_with_the_field_and_what_it_takes(
        self, me: MlflowCaller, path: str, args: dict[str, Any], words: str
    ) -> None:
        error = await me.expect_error(path, args)
        assert (error.status, error.code) == (400, INVALID)
        assert words in error.message

    async def test_a_run_is_no_part_of_what_is_part_of_it(self, me: MlflowCaller) -> None:
        outer = await me.run()
        inner = await me.run(tags=[{"key": "mlflow.parentRunId", "value": outer}])
        result = await me.expect_error(
            "runs/set-tag", {"run_id": outer, "key": "mlflow.parentRunId", "value": inner}
        )
        assert (result.code, "part of run" in result.message) == (INVALID, True)

    async def test_a_ring_is_found_however_many_runs_it_has(
        self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_tags, "MAX_DEPTH", 3)
        first = last = await me.run()
        for _ in range(4):
            last = await me.run(tags=[{"key": "mlflow.parentRunId", "value": last}])
        result = await me.expect_error(
            "runs/set-tag", {"run_id": first, "key": "mlflow.parentRunId", "value": last}
        )
        assert (result.code, "3 runs deep" in result.message) == (INVALID, True)


class TestAModelOfOldClients:
    @pytest.mark.parametrize("nonsense", ["not JSON", "null", "5", '{"a": 1}', "[" * 8000])
    async def test_is_kept_whatever_somebody_has_set_its_tag_to(
        self, me: MlflowCaller, nonsense: str
    ) -> None:
        run = await me.run()
        results = {"artifact_path": "net", "flavors": {}, "utc_time_created": "2026-01-01", "run_id": run}
        await me.call("runs/set-tag", {"run_id": run, "key": "mlflow.log-model.history", "value": nonsense})
        await me.call("runs/log-model", {"run_id": run, "model_json": json.dumps(results)})
        result = (await me.call("runs/get", {"run_id": run}))["run"]["data"]["tags"]
        assert [json.loads(tag["value"]) for tag in result if tag["key"] == "mlflow.log-model.history"] == [
            [results]
        ]

    async def test_of_a_million_brackets_is_refused(self, me: MlflowCaller) -> None:
        result = await me.expect_error(
            "runs/log-model", {"run_id": await me.run(), "model_json": "[" * 1_000_000}
        )
        assert (result.status, result.code) == (400, "INVALID_PARAMETER_VALUE")


class TestLimits:
    async def test_a_run_has_so_many_metrics_and_no_more(self, me: MlflowCaller, settings: Any) -> None:
        settings.METRIC_KEYS_PER_RUN = 5
        run = await me.run()
        await me.call(
            "runs/log-batch", {"run_id": run, "metrics": [metric(key=f"m{number}") for number in range(5)]}
        )
        result = await me.expect_error("runs/log-metric", {"run_id": run, **metric(key="one more")})
        assert (result.status, result.code) == (400, INVALID)
        assert "different metrics" in result.message
        await me.call("runs/log-metric", {"run_id": run, **metric(key="m1")})

    async def test_a_run_has_so_many_params_and_no_more(
        self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tracking.params.MAX_PARAMS_PER_RUN", 3)
        run = await me.run()
        for number in range(3):
            await me.call("runs/log-parameter", {"run_id": run, "key": f"p{number}", "value": "1"})
        result = await me.expect_error("runs/log-parameter", {"run_id": run, "key": "one more", "value": "1"})
        assert (result.code, "log a file instead" in result.message) == (INVALID, True)

    async def test_a_run_has_so_many_tags_and_no_more(
        self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.tags.MAX_TAGS", 1)
        run = await me.run(tags=[{"key": "a", "value": "1"}])
        await me.call("runs/set-tag", {"run_id": run, "key": "a", "value": "2"})
        assert (
            await me.expect_error("runs/set-tag", {"run_id": run, "key": "b", "value": "1"})
        ).code == INVALID
