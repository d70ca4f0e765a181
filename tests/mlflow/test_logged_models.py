"""Logged models over the protocol: their metrics, their limits, and how they are searched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mlflow.raw import MlflowCaller

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"
NOW = 1_700_000_000_000


async def create_model(me: MlflowCaller, name: str = "net", **more: Any) -> str:
    created = await me.call("logged-models", {"experiment_id": "0", "name": name, **more})
    return str(created["model"]["info"]["model_id"])


async def log_score(me: MlflowCaller, run: str, model: str, value: float | str, **more: Any) -> None:
    args = {"run_id": run, "key": "score", "value": value, "timestamp": NOW, "step": 0, "model_id": model}
    await me.call("runs/log-metric", args | more)


async def metrics_of(me: MlflowCaller, model: str) -> list[dict[str, Any]]:
    response = await me.call(f"logged-models/{model}", method="GET")
    return list(response["model"]["data"]["metrics"])


class TestMetrics:
    async def test_keep_the_newest_point_of_each_data_set(self, me: MlflowCaller) -> None:
        run, model = await me.run(), await create_model(me)
        await log_score(me, run, model, 0.5, step=5)
        await log_score(me, run, model, 0.9, step=3)
        await log_score(me, run, model, 0.7, dataset_name="digits", dataset_digest="0f")
        await log_score(me, run, model, "NaN", dataset_name="digits", dataset_digest="0f", step=1)
        own, of_digits = await metrics_of(me, model)
        assert own == {
            "key": "score",
            "value": 0.5,
            "timestamp": NOW,
            "step": 5,
            "run_id": run,
            "model_id": model,
        }
        assert (of_digits["value"], of_digits["dataset_name"], of_digits["dataset_digest"]) == (
            "NaN",
            "digits",
            "0f",
        )

    async def test_of_a_model_that_is_not_there_are_refused_whole(self, me: MlflowCaller) -> None:
        run = await me.run()
        args = {"run_id": run, "key": "score", "value": 1.0, "timestamp": NOW, "model_id": "m-" + "f" * 32}
        error = await me.expect_error("runs/log-metric", args)
        assert (error.status, error.code) == (404, MISSING)
        assert "Logged model with ID" in error.message
        assert "metrics" not in (await me.call("runs/get", {"run_id": run}))["run"]["data"]

    async def test_are_so_many_and_no_more(self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracking.mlflow.logged_models.model_metrics.MAX_METRICS_PER_MODEL", 1)
        run, model = await me.run(), await create_model(me)
        await log_score(me, run, model, 0.5)
        args = {"run_id": run, "key": "other", "value": 1.0, "timestamp": NOW, "model_id": model}
        error = await me.expect_error("runs/log-metric", args)
        assert (error.code, "may have 1 different metrics" in error.message) == (INVALID, True)
        await log_score(me, run, model, 0.6, step=1)
        assert [item["value"] for item in await metrics_of(me, model)] == [0.6]


class TestPairs:
    @pytest.mark.parametrize(
        ("name", "method", "limit"), [("tags", "PATCH", "MAX_TAGS"), ("params", "POST", "MAX_PARAMS")]
    )
    async def test_are_so_many_and_no_more(
        self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch, name: str, method: str, limit: str
    ) -> None:
        monkeypatch.setattr(f"tracking.mlflow.logged_models.logged_model_calls.{limit}", 1)
        path = f"logged-models/{await create_model(me)}/{name}"
        for value in ("1", "2"):
            await me.call(path, {name: [{"key": "a", "value": value}]}, method)
        error = await me.expect_error(path, {name: [{"key": "b", "value": "1"}]}, method)
        assert (error.code, f"{name}: a logged model may have 1" in error.message) == (INVALID, True)

    async def test_that_are_not_there_cannot_be_deleted(self, me: MlflowCaller) -> None:
        model = await create_model(me, tags=[{"key": "a", "value": "1"}])
        await me.call(f"logged-models/{model}/tags/a", method="DELETE")
        error = await me.expect_error(f"logged-models/{model}/tags/a", method="DELETE")
        assert (error.status, error.code) == (404, MISSING)
        assert error.message == f"No tag with key 'a' found for model with ID '{model}'."


async def test_a_name_with_characters_of_addresses_is_refused(me: MlflowCaller) -> None:
    error = await me.expect_error("logged-models", {"experiment_id": "0", "name": "a/b"})
    assert (error.code, "cannot contain the following characters" in error.message) == (INVALID, True)


class TestSearch:
    @pytest.fixture
    async def me(self, me: MlflowCaller) -> MlflowCaller:
        """Four models: `good` and `fair` with a score, `spoilt` with NaN, `new` with nothing."""
        run = await me.run()
        good = await create_model(me, "good", tags=[{"key": "team", "value": "vision"}])
        fair = await create_model(me, "fair", params=[{"key": "lr", "value": "0.1"}])
        spoilt = await create_model(me, "spoilt")
        await create_model(me, "new")
        await log_score(me, run, good, 0.9, dataset_name="digits", dataset_digest="0f")
        await log_score(me, run, fair, 0.5, dataset_name="letters", dataset_digest="1e")
        await log_score(me, run, spoilt, "NaN")
        return me

    async def search(self, me: MlflowCaller, **args: Any) -> list[str]:
        page = await me.call("logged-models/search", {"experiment_ids": ["0"], **args})
        return [row["info"]["name"] for row in page.get("models", [])]

    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            ({"field_name": "metrics.score"}, ["fair", "good", "new", "spoilt"]),
            ({"field_name": "metrics.score", "ascending": False}, ["good", "fair", "new", "spoilt"]),
            (
                {"field_name": "metrics.score", "dataset_name": "letters"},
                ["fair", "new", "spoilt", "good"],
            ),
            (
                {"field_name": "metrics.score", "dataset_name": "letters", "dataset_digest": "0f"},
                ["new", "spoilt", "fair", "good"],
            ),
            ({"field_name": "name"}, ["fair", "good", "new", "spoilt"]),
        ],
    )
    async def test_orders_by_attributes_and_metrics_and_puts_those_without_a_number_last(
        self, me: MlflowCaller, order: dict[str, Any], expected: list[str]
    ) -> None:
        assert await self.search(me, order_by=[order]) == expected

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            ({"datasets": [{"dataset_name": "digits"}]}, ["good"]),
            ({"datasets": [{"dataset_name": "digits", "dataset_digest": "1e"}]}, []),
            ({"filter": "metrics.score >= 0.5"}, ["fair", "good"]),
            ({"filter": "metrics.score >= 0.5", "datasets": [{"dataset_name": "letters"}]}, ["fair"]),
            ({"filter": "metrics.score > 0.5", "datasets": [{"dataset_name": "letters"}]}, []),
            ({"filter": "name = 'good' AND tags.team = 'vision'"}, ["good"]),
            ({"filter": "params.lr IN ('0.1', '0.2')"}, ["fair"]),
            ({"filter": "creation_time > 5 AND status = 'PENDING' AND name LIKE 'n%'"}, ["new"]),
        ],
    )
    async def test_filters_by_attributes_tags_params_metrics_and_data_sets(
        self, me: MlflowCaller, args: dict[str, Any], expected: list[str]
    ) -> None:
        assert await self.search(me, **args) == expected

    async def test_goes_page_by_page(self, me: MlflowCaller) -> None:
        args = {"experiment_ids": ["0"], "max_results": 3, "order_by": [{"field_name": "name"}]}
        first = await me.call("logged-models/search", args)
        assert [row["info"]["name"] for row in first["models"]] == ["fair", "good", "new"]
        args["page_token"] = first["next_page_token"]
        second = await me.call("logged-models/search", args)
        assert [row["info"]["name"] for row in second["models"]] == ["spoilt"]
        assert "next_page_token" not in second

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            ({"order_by": [{"field_name": "colour"}]}, "Invalid order by field name: colour"),
            ({"order_by": [{}]}, "order_by[0].field_name"),
            ({"datasets": [{"dataset_digest": "0f"}]}, "datasets[0].dataset_name"),
        ],
    )
    async def test_names_the_field_that_is_wrong(
        self, me: MlflowCaller, args: dict[str, Any], words: str
    ) -> None:
        error = await me.expect_error("logged-models/search", {"experiment_ids": ["0"], **args})
        assert (error.status, error.code) == (400, INVALID)
        assert words in error.message
