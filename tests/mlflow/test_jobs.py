"""A script that logs by MLflow, as a job of TrainHub: unchanged, and tied to the job whatever it opens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.clients import ENDING, PREAMBLE
from tests.runs import log, submit, told, wait_for

pytestmark = pytest.mark.slow

SCRIPT = """
own = os.environ["MLFLOW_RUN_ID"]
out["own"] = own
out["asked"] = mlflow.set_experiment("no such experiment").experiment_id
with mlflow.start_run() as run:
    out["first"] = run.info.run_id
    mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_param("lr", 0.1)
    mlflow.set_tag("note", "x")
    with mlflow.start_run(nested=True, run_name="inner") as inner:
        mlflow.log_metric("loss", 1.0)
        with mlflow.start_run(nested=True, run_name="innermost") as innermost:
            mlflow.log_metric("loss", 2.0)
    out["nested"] = [inner.info.run_id, innermost.info.run_id]
out["while running"] = mlflow.get_run(own).info.status
with mlflow.start_run(run_name="second") as second:
    out["second"] = second.info.run_id
    mlflow.log_metric("loss", 3.0)
model = client.create_logged_model("0", name="net")
out["model of"] = model.source_run_id
out["model in"] = model.experiment_id

known = mlflow.set_experiment("elsewhere")
out["known"] = known.name
os.environ["MLFLOW_RUN_ID"] = own
with mlflow.start_run() as run:
    out["once more"] = run.info.run_id
    mlflow.log_metric("loss", 0.25, step=2)
out["of another"] = error_of(client.log_metric, os.environ["OTHER"], "loss", 1.0)
out["reads another"] = client.get_run(os.environ["OTHER"]).info.run_id
out["deletes"] = error_of(client.delete_experiment, known.experiment_id)
out["deletes itself"] = error_of(client.delete_run, own)
"""


@pytest.fixture(scope="module")
def other(hub: Hub) -> str:
    """A run of somebody else, in an experiment that is there already."""
    with hub.client() as api:
        created = (
            api.post("/api/2.0/mlflow/experiments/create", json={"name": "elsewhere"})
            .raise_for_status()
            .json()
        )
        run = api.post("/api/2.0/mlflow/runs/create", json=created).raise_for_status().json()
    return str(run["run"]["info"]["run_id"])


@pytest.fixture(scope="module")
def job(hub: Hub, mlflow_python: str, other: str) -> tuple[str, dict[str, Any]]:
    """The job's id, and what its script saw."""
    script = f"import subprocess, sys\nsys.exit(subprocess.call([{mlflow_python!r}, 'inner.py']))\n"
    inner = f"open('inner.py', 'w').write({PREAMBLE + SCRIPT + ENDING!r})\n"
    variables = {"OTHER": other, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    run = submit(
        hub, inner + script, experiment="jobs", environment_variables=variables, tags={"purpose": "test"}
    )
    facts = wait_for(hub, run, seconds=120)
    said = log(hub, run).decode()
    assert facts["state"] == "Completed", said
    return run, json.loads(said.strip().splitlines()[-1])


class TestAScriptInAJob:
    def test_logs_to_the_job_itself(self, job: tuple[str, dict[str, Any]]) -> None:
        run, seen = job
        assert seen["own"] == seen["first"] == run

    def test_may_set_whichever_experiment_it_likes(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        run, seen = job
        assert (seen["known"], seen["once more"]) == ("elsewhere", run)
        assert told(hub, run)["experiment"] == "jobs"

    def test_has_its_wish_for_an_experiment_written_down_once(
        self, job: tuple[str, dict[str, Any]], hub: Hub
    ) -> None:
        with hub.client() as api:
            events = api.get(f"/api/v1/runs/{job[0]}/events/").json()
        wishes = [event["message"] for event in events if "set the experiment" in event["message"]]
        assert len(wishes) == 2
        assert "'no such experiment'" in wishes[0]

    def test_never_ends_the_job_by_ending_its_run(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        run, seen = job
        assert seen["while running"] == "RUNNING"
        facts = told(hub, run)
        assert facts["tags"]["mlflow.client.status"] == "FINISHED"
        assert facts["tags"]["purpose"] == "test"

    def test_opens_further_runs_as_parts_of_the_job(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        run, seen = job
        with hub.client() as api:
            parts = api.get("/api/v1/runs/", params={"parent": run}).raise_for_status().json()["results"]
            listed = (
                api.get("/api/v1/runs/", params={"experiment": "jobs"}).raise_for_status().json()["results"]
            )
        assert {part["id"] for part in parts} == {*seen["nested"], seen["second"]}
        assert all(part["kind"] == "external" and part["state"] == "Completed" for part in parts)
        assert [item["id"] for item in listed] == [run]

    def test_keeps_how_they_are_nested(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        _, seen = job
        inner, innermost = seen["nested"]
        assert told(hub, innermost)["tags"]["mlflow.parentRunId"] == inner

    def test_owns_a_model_that_it_logs_without_a_run(self, job: tuple[str, dict[str, Any]]) -> None:
        run, seen = job
        assert (seen["model of"], seen["model in"]) == (run, seen["asked"])

    def test_reads_other_runs_and_writes_to_none(self, job: tuple[str, dict[str, Any]], other: str) -> None:
        _, seen = job
        assert seen["reads another"] == other
        assert seen["of another"][0] == seen["deletes"][0] == "PERMISSION_DENIED"
        assert seen["deletes itself"][0] == "INVALID_PARAMETER_VALUE"


class TestAfterTheJob:
    def test_its_metrics_are_read_by_its_owner(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        with hub.client() as api:
            run = (
                api.get("/api/2.0/mlflow/runs/get", params={"run_id": job[0]})
                .raise_for_status()
                .json()["run"]
            )
        assert (run["info"]["status"], run["data"]["metrics"][0]["value"]) == ("FINISHED", 0.25)

    def test_its_token_is_worth_nothing(self, job: tuple[str, dict[str, Any]], hub: Hub) -> None:
        with hub.client("trainhub-job-ended") as api:
            answer = api.get("/api/2.0/mlflow/runs/get", params={"run_id": job[0]})
        assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")
