"""The fluent API: what most scripts call."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.conftest import ClientRunner

pytestmark = pytest.mark.slow

SCRIPT = """
mlflow.set_experiment("fluent")
mlflow.set_experiment("fluent")
mlflow.set_experiment_tag("team", "vision")
with mlflow.start_run(run_name="first", tags={"seed": "1"}, description="a note") as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_params({"depth": 3, "act": "relu"})
    mlflow.log_metric("loss", 0.5, step=0)
    mlflow.log_metric("loss", 0.25, step=1)
    mlflow.log_metrics({"acc": 0.9, "nan": math.nan, "inf": math.inf, "less": -math.inf}, step=2)
    mlflow.set_tag("mlflow.runName", "renamed")
    mlflow.set_tags({"a": "1", "b": "2"})
    mlflow.delete_tag("b")
    with mlflow.start_run(run_name="inner", nested=True) as inner:
        mlflow.log_metric("loss", 1.0)
    out["again"] = error_of(mlflow.log_param, "lr", 0.2)
    out["several"] = error_of(mlflow.log_params, {"lr": 7, "depth": 8})
    mlflow.log_param("lr", 0.1)
found = mlflow.get_run(run.info.run_id)
out["info"] = {name: getattr(found.info, name) for name in
    ("run_id", "run_name", "status", "experiment_id", "artifact_uri", "lifecycle_stage", "user_id")}
out["took"] = found.info.end_time - found.info.start_time
out["params"], out["tags"] = found.data.params, found.data.tags
out["metrics"] = {key: str(value) for key, value in found.data.metrics.items()}
out["history"] = [[metric.value, metric.step] for metric in client.get_metric_history(run.info.run_id,
    "loss")]
out["inner"] = mlflow.get_run(inner.info.run_id).data.tags
out["inner_id"] = inner.info.run_id
out["experiment"] = dict(mlflow.get_experiment_by_name("fluent"))

with mlflow.start_run(run_id=run.info.run_id):
    out["resumed"] = mlflow.get_run(run.info.run_id).info.status
    mlflow.log_metric("loss", 0.125, step=2)
try:
    with mlflow.start_run(run_name="broken") as broken:
        raise ValueError("on purpose")
except ValueError:
    out["broken"] = mlflow.get_run(broken.info.run_id).info.status
killed = mlflow.start_run(run_name="killed")
mlflow.end_run("KILLED")
out["killed"] = mlflow.get_run(killed.info.run_id).info.status

import contextlib, io
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    mlflow.start_run(run_name="from a laptop")
    mlflow.end_run()
out["printed"] = printed.getvalue()

with mlflow.start_run(run_name="async") as later:
    for step in range(200):
        mlflow.log_metric("loss", step / 10, step=step, synchronous=False)
    mlflow.log_params({"one": 1}, synchronous=False)
    mlflow.flush_async_logging()
out["async"] = [metric.step for metric in client.get_metric_history(later.info.run_id, "loss")]

import pandas
with mlflow.start_run() as reading:
    data = mlflow.data.from_pandas(pandas.DataFrame({"x": [1, 2]}), source="https://example.org/x.csv",
        name="x")
    mlflow.log_input(data, context="training", tags={"split": "a"})
read = mlflow.get_run(reading.info.run_id)
out["inputs"] = [[item.dataset.name, item.dataset.source_type, {tag.key: tag.value for tag in item.tags}]
    for item in read.inputs.dataset_inputs]
out["named"] = read.info.run_name

frame = mlflow.search_runs(experiment_names=["fluent"],
    filter_string="metrics.loss < 0.5 and params.lr = '0.1'")
out["frame"] = frame[["run_id", "metrics.loss", "params.lr", "tags.a"]].values.tolist()
out["children"] = [row.info.run_id for row in
    mlflow.search_runs(filter_string=f"tags.mlflow.parentRunId = '{run.info.run_id}'", output_format="list")]
out["default"] = mlflow.get_experiment("0").name
out["last"] = mlflow.last_active_run().info.run_id == reading.info.run_id
mlflow.delete_run(broken.info.run_id)
out["deleted"] = mlflow.get_run(broken.info.run_id).info.lifecycle_stage
out["late"] = error_of(client.log_metric, broken.info.run_id, "loss", 1.0)
"""


@pytest.fixture(scope="module")
def results(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


class TestARunFromALaptop:
    def test_is_named_and_ended_by_its_client(self, results: dict[str, Any]) -> None:
        info = results["info"]
        assert (info["run_name"], info["status"], info["lifecycle_stage"], info["user_id"]) == (
            "renamed",
            "FINISHED",
            "active",
            "admin",
        )
        assert info["artifact_uri"] == f"mlflow-artifacts:/{info['experiment_id']}/{info['run_id']}/artifacts"
        assert results["took"] >= 0

    def test_keeps_its_params(self, results: dict[str, Any]) -> None:
        assert results["params"] == {"lr": "0.1", "depth": "3", "act": "relu"}

    def test_keeps_its_tags(self, results: dict[str, Any]) -> None:
        tags = results["tags"]
        assert (tags["seed"], tags["a"], tags["mlflow.runName"]) == ("1", "1", "renamed")
        assert "b" not in tags
        assert tags["mlflow.note.content"] == "a note"

    def test_tells_the_last_of_each_metric_also_what_is_no_number(self, results: dict[str, Any]) -> None:
        assert results["metrics"] == {
            "loss": "0.25",
            "acc": "0.9",
            "nan": "nan",
            "inf": "inf",
            "less": "-inf",
        }

    def test_tells_the_points_of_a_metric(self, results: dict[str, Any]) -> None:
        assert results["history"] == [[0.5, 0], [0.25, 1]]

    def test_a_param_never_changes(self, results: dict[str, Any]) -> None:
        code, message = results["again"]
        assert code == "INVALID_PARAMETER_VALUE"
        assert "Param with key='lr' was already logged with value='0.1'" in message
        code, message = results["several"]
        assert code == "INVALID_PARAMETER_VALUE"
        assert "'old_value': '0.1', 'new_value': '7'" in message

    def test_can_be_taken_up_again(self, results: dict[str, Any]) -> None:
        assert results["resumed"] == "RUNNING"

    def test_tells_how_it_ended(self, results: dict[str, Any]) -> None:
        assert (results["broken"], results["killed"]) == ("FAILED", "KILLED")

    def test_is_given_a_name(self, results: dict[str, Any]) -> None:
        assert len(results["named"].split("-")) == 3

    def test_nests(self, results: dict[str, Any]) -> None:
        assert results["inner"]["mlflow.parentRunId"] == results["info"]["run_id"]
        assert results["children"] == [results["inner_id"]]

    def test_tells_what_it_read(self, results: dict[str, Any]) -> None:
        assert results["inputs"] == [["x", "http", {"split": "a", "mlflow.data.context": "training"}]]

    def test_is_found_by_a_filter(self, results: dict[str, Any]) -> None:
        assert results["frame"] == [[results["info"]["run_id"], 0.125, "0.1", "1"]]

    def test_takes_nothing_once_it_is_deleted(self, results: dict[str, Any]) -> None:
        assert results["deleted"] == "deleted"
        code, message = results["late"]
        assert code == "INVALID_PARAMETER_VALUE"
        assert "must be in the 'active' state" in message


class TestLoggingInTheBackground:
    def test_loses_nothing(self, results: dict[str, Any]) -> None:
        assert results["async"] == list(range(200))


class TestExperiments:
    def test_are_made_once_and_tagged(self, results: dict[str, Any]) -> None:
        assert results["experiment"]["name"] == "fluent"
        assert results["experiment"]["tags"] == {"team": "vision"}
        assert (
            results["experiment"]["artifact_location"]
            == f"mlflow-artifacts:/{results['experiment']['experiment_id']}"
        )

    def test_0_is_the_default_one(self, results: dict[str, Any]) -> None:
        assert results["default"] == "default"


class TestTheHub:
    def test_lists_the_run_as_one_from_elsewhere(self, results: dict[str, Any], hub: Hub) -> None:
        with hub.client() as api:
            run = api.get(f"/api/v1/runs/{results['info']['run_id']}/").raise_for_status().json()
        assert (run["kind"], run["state"]) == ("external", "Completed")
        assert (run["display_name"], run["experiment"]) == ("renamed", "fluent")
        assert run["tags"]["seed"] == "1"
        assert (run["cluster"], run["spec"], run["attempts"]) == ("", {}, [])

    def test_keeps_a_journal_of_what_its_client_said(self, results: dict[str, Any], hub: Hub) -> None:
        with hub.client() as api:
            events = api.get(f"/api/v1/runs/{results['info']['run_id']}/events/").json()
        states = [event["to_state"] for event in events if event["to_state"]]
        assert states == ["Running", "Completed", "Running", "Completed"]

    def test_neither_cancels_nor_clones_it(self, results: dict[str, Any], hub: Hub) -> None:
        with hub.client() as api:
            for verb in ("cancel", "clone"):
                answer = api.post(f"/api/v1/runs/{results['info']['run_id']}/{verb}/")
                assert answer.status_code == 409
                assert "is external: TrainHub did not start it" in answer.json()["detail"]

    @pytest.mark.browser
    @pytest.mark.parametrize("is_signed_in", [True, False])
    def test_opens_by_the_address_that_its_client_prints(
        self, results: dict[str, Any], hub: Hub, browser: Any, signed_in: Any, is_signed_in: bool
    ) -> None:
        address = re.findall(r"https?://\S+/runs/\S+", results["printed"])[0]
        context = browser.new_context(storage_state=signed_in if is_signed_in else None)
        page = context.new_page()
        if is_signed_in:
            page.goto(hub.browser_url)
        page.goto(address.replace(hub.url, hub.browser_url))
        if not is_signed_in:
            page.fill("input[name=username]", "admin")
            page.fill("input[name=password]", hub.password)
            page.press("input[name=password]", "Enter")
        page.wait_for_url(re.compile(r"/runs/\d+/"))
        assert page.locator("h1").inner_text() == "from a laptop"
        context.close()
