"""What clients other than ours expect of an MLflow server, such as importers and wrappers: names, ids,
orders, addresses."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from starlette.applications import Starlette

from jobs.models import Experiment, Run
from registry.mlflow.routes import routes as registry_routes
from registry.models import ModelVersion
from tests.hub import PROJECT
from tests.mlflow.conftest import ClientRunner
from tests.mlflow.raw import MlflowCaller, contributor_token
from tracking.artifacts.routes import routes as artifact_routes
from tracking.mlflow import run_tags
from tracking.mlflow.about import OUT_OF_SCOPE
from tracking.mlflow.routes import hot, routes
from tracking.models import LoggedModel

NOW = 1_700_000_000_000
PARENT = "mlflow.parentRunId"
LIST_ENDPOINTS = """
import json, logging
logging.disable(logging.CRITICAL)
from mlflow.server.handlers import get_endpoints
print(json.dumps(sorted({(path, method) for path, _, methods in get_endpoints() for method in methods})))
"""


class TestAParentThatIsNotHere:
    async def test_is_kept_as_text(self, me: MlflowCaller) -> None:
        run = await me.run(tags=[{"key": PARENT, "value": "f" * 32}])
        other = await me.run()
        await me.call("runs/set-tag", {"run_id": other, "key": PARENT, "value": "not even an id"})
        for key, value in ((run, "f" * 32), (other, "not even an id")):
            results = await me.call("runs/get", {"run_id": key})
            assert {"key": PARENT, "value": value} in results["run"]["data"]["tags"]
            assert await sync_to_async(lambda key=key: Run.objects.get(pk=key).parent_id)() is None

    async def test_becomes_one_when_it_appears(self, me: MlflowCaller) -> None:
        child = await me.run(tags=[{"key": PARENT, "value": "f" * 32}])
        created = await me.call(
            "logged-models", {"experiment_id": "0", "name": "net", "source_run_id": "f" * 32}
        )
        assert created["model"]["info"]["source_run_id"] == "f" * 32

        def appear() -> tuple[str | None, str | None]:
            like = Run.objects.get(pk=child)
            parent = Run.objects.create(
                pk="f" * 32,
                number=like.number + 100,
                workspace=like.workspace,
                experiment=like.experiment,
                kind=like.kind,
            )
            run_tags.link_pending(parent)
            return Run.objects.get(pk=child).parent_id, LoggedModel.objects.get(name="net").run_id

        assert await sync_to_async(appear)() == ("f" * 32, "f" * 32)

    async def test_is_replaced_by_one_that_is_here(self, me: MlflowCaller) -> None:
        """As an importer does, which sets the tag once it has copied the parent."""
        child, parent = await me.run(tags=[{"key": PARENT, "value": "f" * 32}]), await me.run()
        await me.call("runs/set-tag", {"run_id": child, "key": PARENT, "value": parent})
        assert await sync_to_async(lambda: Run.objects.get(pk=child).parent_id)() == parent


class TestLongNames:
    async def test_of_500_characters_are_kept(self, me: MlflowCaller) -> None:
        created = await me.call("experiments/create", {"name": "e" * 500})
        run = await me.run(created["experiment_id"], run_name="r" * 500)
        assert (await me.call("experiments/get", created))["experiment"]["name"] == "e" * 500
        assert (await me.call("runs/get", {"run_id": run}))["run"]["info"]["run_name"] == "r" * 500

    async def test_beyond_that_are_cut_off_and_kept_whole_in_a_tag(self, me: MlflowCaller) -> None:
        first = await me.call("experiments/create", {"name": "e" * 501})
        second = await me.call("experiments/create", {"name": "e" * 502})
        assert first != second
        assert (
            await me.expect_error("experiments/create", {"name": "e" * 501})
        ).code == "RESOURCE_ALREADY_EXISTS"
        result = (await me.call("experiments/get-by-name", {"experiment_name": "e" * 501}))["experiment"]
        assert (result["experiment_id"], len(result["name"])) == (first["experiment_id"], 500)
        assert result["tags"] == [{"key": "trainhub.full_name", "value": "e" * 501}]
        run = (await me.call("runs/get", {"run_id": await me.run(run_name="r" * 900)}))["run"]
        assert len(run["info"]["run_name"]) == 500
        assert {"key": "trainhub.full_name", "value": "r" * 900} in run["data"]["tags"]

    async def test_of_metrics_params_and_tags_do_not_end_a_training(self, me: MlflowCaller) -> None:
        run, long = await me.run(), "k" * 251
        batch = {
            "metrics": [{"key": long, "value": 1.0, "timestamp": NOW, "step": 0}],
            "params": [{"key": long, "value": "p"}],
            "tags": [{"key": long, "value": "t"}],
        }
        await me.call("runs/log-batch", {"run_id": run, **batch})
        await me.call(
            "runs/log-metric", {"run_id": run, "key": long, "value": 2.0, "timestamp": NOW, "step": 1}
        )
        data = (await me.call("runs/get", {"run_id": run}))["run"]["data"]
        short = data["params"][0]["key"]
        assert re.fullmatch(r"k{237}_[0-9a-f]{12}", short)
        assert [item["key"] for item in data["metrics"]] == [short]
        tags = {item["key"]: item["value"] for item in data["tags"]}
        assert (tags[short], tags[f"trainhub.full_key.{short[-12:]}"]) == ("t", long)
        results = await me.call("metrics/get-history", {"run_id": run, "metric_key": long})
        assert [item["value"] for item in results["metrics"]] == [1.0, 2.0]


class TestOldClients:
    async def test_name_a_run_by_its_uuid(self, me: MlflowCaller) -> None:
        run = await me.run()
        assert (await me.call("runs/get", {"run_uuid": run}))["run"]["info"]["run_id"] == run
        await me.call("runs/set-tag", {"run_uuid": run, "key": "a", "value": "1"})
        assert {"key": "a", "value": "1"} in (await me.call("runs/get", {"run_id": run}))["run"]["data"][
            "tags"
        ]

    async def test_send_the_numbers_of_choices(self, me: MlflowCaller) -> None:
        run = await me.run()
        info = (await me.call("runs/update", {"run_id": run, "status": 4}))["run_info"]
        assert info["status"] == "FAILED"
        await me.call("runs/delete", {"run_id": run})
        pages = [
            await me.call("runs/search", {"experiment_ids": ["0"], "run_view_type": view})
            for view in (1, "2", 3)
        ]
        assert [len(page.get("runs", [])) for page in pages] == [0, 1, 1]


class TestTheLatestPoint:
    @pytest.mark.parametrize("at_once", [True, False])
    async def test_is_the_greatest_of_equal_step_and_time(self, me: MlflowCaller, at_once: bool) -> None:
        run = await me.run()
        points = [{"key": "loss", "value": value, "timestamp": NOW, "step": 3} for value in (1.0, 5.0, 2.0)]
        points += [{"key": "loss", "value": 9.0, "timestamp": NOW - 1, "step": 3}]
        points += [{"key": "loss", "value": 9.0, "timestamp": NOW + 9, "step": 2}]
        for some in [points] if at_once else [[point] for point in points]:
            await me.call(
                "runs/log-batch", {"run_id": run, "metrics": some, "tags": [{"key": "a", "value": "1"}]}
            )
        results = (await me.call("runs/get", {"run_id": run}))["run"]["data"]["metrics"]
        assert results == [{"key": "loss", "value": 5.0, "timestamp": NOW, "step": 3}]


class TestTheDefaultExperiment:
    async def test_is_there_from_the_start_as_0_and_reading_makes_no_row(self, me: MlflowCaller) -> None:
        by_id = await me.call("experiments/get", {"experiment_id": "0"})
        by_name = await me.call("experiments/get-by-name", {"experiment_name": "Default"})
        listed = await me.call("experiments/search", {})
        assert by_id["experiment"] == by_name["experiment"] == listed["experiments"][0]
        assert (by_id["experiment"]["experiment_id"], by_id["experiment"]["name"]) == ("0", "default")
        assert await me.call("runs/search", {"experiment_ids": ["0"]}) == {}
        assert await sync_to_async(Experiment.objects.count)() == 0

    async def test_keeps_its_id_once_it_has_runs(self, me: MlflowCaller) -> None:
        run = await me.run("0")
        info = (await me.call("runs/get", {"run_id": run}))["run"]["info"]
        result = (await me.call("runs/search", {"experiment_ids": ["0"]}))["runs"]
        listed = (await me.call("experiments/search", {}))["experiments"]
        assert (
            info["experiment_id"] == result[0]["info"]["experiment_id"] == listed[0]["experiment_id"] == "0"
        )
        assert len(listed) == 1
        model = (await me.call("logged-models", {"experiment_id": "0", "name": "net"}))["model"]["info"]
        assert model["experiment_id"] == "0"

    async def test_cannot_be_made_again(self, me: MlflowCaller) -> None:
        assert (
            await me.expect_error("experiments/create", {"name": "Default"})
        ).code == "RESOURCE_ALREADY_EXISTS"

    async def test_is_not_what_another_can_be_renamed_to(self, me: MlflowCaller) -> None:
        made = await me.call("experiments/create", {"name": "other"})
        args = {"experiment_id": made["experiment_id"], "new_name": "default"}
        assert (await me.expect_error("experiments/update", args)).code == "RESOURCE_ALREADY_EXISTS"
        assert (await me.call("experiments/get", {"experiment_id": "0"}))["experiment"]["name"] == "default"


async def test_a_version_of_a_pending_logged_model_gets_its_files_later(me: MlflowCaller) -> None:
    """The client registers first and sends the files afterwards."""
    whole = [*hot, *registry_routes, *artifact_routes, *routes]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Starlette(routes=whole)), base_url="http://hub:8000"
    ) as client:
        me = MlflowCaller(client, me.token)
        model = (await me.call("logged-models", {"experiment_id": "0", "name": "net"}))["model"]["info"]
        await me.call("registered-models/create", {"name": "iris"})
        args = {"name": "iris", "source": f"models:/{model['model_id']}", "model_id": model["model_id"]}
        created = (await me.call("model-versions/create", args))["model_version"]
        assert (created["version"], created["status"]) == ("1", "READY")
        bearer = {"Authorization": f"Bearer {me.token}"}
        address = "/api/2.0/mlflow-artifacts/artifacts"
        inside = model["artifact_uri"].removeprefix("mlflow-artifacts:/")
        assert (
            await client.put(f"{address}/{inside}/a.txt", content=b"weights", headers=bearer)
        ).status_code == 200
        await me.call(f"logged-models/{model['model_id']}", {"status": "LOGGED_MODEL_READY"}, "PATCH")
        got = await client.get(f"{address}/models/iris/1/a.txt", headers=bearer)
        assert (got.status_code, got.content) == (200, b"weights")
    version = await sync_to_async(ModelVersion.objects.get)()
    assert version.certificate
    assert version.scan is None


@pytest.fixture(scope="module")
def endpoints(mlflow_python: str) -> list[tuple[str, str]]:
    """Every address and method of MLflow's own server."""
    done = subprocess.run(
        [mlflow_python, "-c", LIST_ENDPOINTS], capture_output=True, text=True, check=True, timeout=240
    )
    return [(path, method) for path, method in json.loads(done.stdout.splitlines()[-1])]


async def test_every_call_of_mlflows_server_is_offered_or_refused_by_name(
    me: MlflowCaller, endpoints: list[tuple[str, str]]
) -> None:
    """The same below /api and /ajax-api. What is not offered says so as MLflow's error, and stands in
    docs/mlflow.md."""
    documented = (PROJECT / "docs" / "mlflow.md").read_text()
    whole = [*hot, *registry_routes, *artifact_routes, *routes]
    token = await contributor_token()
    missing: dict[str, Any] = {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Starlette(routes=whole)), base_url="http://hub:8000"
    ) as client:
        for path, method in endpoints:
            address = re.sub(r"<[^>]*>", "1", path)
            answer = await client.request(method, address, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code < 500, (method, path, answer.text)
            assert answer.status_code != 405, (method, path)
            assert answer.json().get("error_code", "") or answer.status_code == 200, (
                method,
                path,
                answer.text,
            )
            if answer.json().get("error_code") == "ENDPOINT_NOT_FOUND":
                parts = path.partition("mlflow")[2].strip("/").split("/")
                missing[f"{method} {path}"] = next(
                    (OUT_OF_SCOPE[part] for part in parts if part in OUT_OF_SCOPE), None
                )
    assert len(endpoints) > 300
    assert [call for call, kind in missing.items() if kind is None and "graphql" not in call] == []
    assert [kind for kind in {*missing.values()} - {None} if kind not in documented] == []


SCRIPT = """
with mlflow.start_run(run_name="r" * 600, tags={"mlflow.parentRunId": "f" * 32}) as run:
    mlflow.log_metric("m", 1.0)
out["name"] = len(client.get_run(run.info.run_id).info.run_name)
out["experiment"] = run.info.experiment_id
out["long"] = len(mlflow.set_experiment("e" * 600).name)
out["again"] = mlflow.set_experiment("e" * 600).experiment_id == mlflow.set_experiment("e" *
    600).experiment_id
with mlflow.start_run() as run:
    mlflow.log_params({"k" * 300: 1})
    mlflow.log_metric("k" * 300, 2.0)
out["metrics"] = list(client.get_run(run.info.run_id).data.metrics.values())
out["default"] = client.get_experiment("0").experiment_id
"""


def test_the_unmodified_client_trains_with_long_names_and_unknown_parents(client: ClientRunner) -> None:
    result = client(SCRIPT)
    assert result == {
        "name": 500,
        "experiment": "0",
        "long": 500,
        "again": True,
        "metrics": [2.0],
        "default": "0",
    }
