"""Runs over the protocol: tags that stand for fields, deleted runs, inputs, and a database that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.db.models import Model

from jobs.models import Run
from tests.mlflow.raw import MlflowCaller, error_response, job_with_token
from tracking.models import Param, RunInput

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"
NAME, PARENT = "mlflow.runName", "mlflow.parentRunId"
NOW = 1_700_000_000_000


async def parent_of(run: str) -> str | None:
    return (await Run.objects.aget(pk=run)).parent_id


def dataset(name: str) -> dict[str, Any]:
    return {"dataset": {"name": name, "digest": "0f", "source_type": "http", "source": "https://example.org"}}


class TestATag:
    async def test_of_the_name_renames_the_run_and_stays(self, me: MlflowCaller) -> None:
        run = await me.run(run_name="night")
        await me.call("runs/set-tag", {"run_id": run, "key": NAME, "value": "day"})
        error = await me.expect_error("runs/delete-tag", {"run_id": run, "key": NAME})
        assert (error.code, "a run needs a name" in error.message) == (INVALID, True)
        assert (await me.call("runs/get", {"run_id": run}))["run"]["info"]["run_name"] == "day"

    async def test_that_is_not_there_cannot_be_deleted(self, me: MlflowCaller) -> None:
        run = await me.run()
        error = await me.expect_error("runs/delete-tag", {"run_id": run, "key": "team"})
        assert (error.status, error.code) == (404, MISSING)
        assert error.message == f"No tag with name: team in run with id {run}"

    async def test_of_the_parent_takes_the_run_out_when_it_is_deleted(self, me: MlflowCaller) -> None:
        outer = await me.run()
        inner = await me.run(tags=[{"key": PARENT, "value": outer}])
        assert await parent_of(inner) == outer
        await me.call("runs/delete-tag", {"run_id": inner, "key": PARENT})
        assert await parent_of(inner) is None

    async def test_of_the_parent_makes_a_job_a_part_of_an_external_run(self, me: MlflowCaller) -> None:
        job, _ = await job_with_token()
        search = await me.run()
        await me.call("runs/set-tag", {"run_id": job.pk, "key": PARENT, "value": search})
        assert await parent_of(job.pk) == search
        await me.call("runs/delete-tag", {"run_id": job.pk, "key": PARENT})
        assert await parent_of(job.pk) is None

    async def test_of_the_parent_makes_no_job_a_part_of_a_job(self, me: MlflowCaller) -> None:
        job, _ = await job_with_token()
        other = await Run.objects.acreate(
            number=77, workspace_id=job.workspace_id, experiment_id=job.experiment_id, display_name="other"
        )
        await me.call("runs/set-tag", {"run_id": other.pk, "key": PARENT, "value": job.pk})
        assert await parent_of(other.pk) is None

    async def test_of_the_parent_never_takes_a_run_from_its_job(self, me: MlflowCaller) -> None:
        run, token = await job_with_token()
        job = MlflowCaller(me.client, token)
        outer, inner = await job.run(), await job.run()
        await job.call("runs/set-tag", {"run_id": inner, "key": PARENT, "value": outer})
        assert await parent_of(inner) == run.pk
        await job.call("runs/delete-tag", {"run_id": inner, "key": PARENT})
        assert await parent_of(inner) == run.pk


async def test_the_end_of_a_run_is_corrected_without_its_status(me: MlflowCaller) -> None:
    run = await me.run()
    await me.call("runs/update", {"run_id": run, "status": "FAILED", "end_time": NOW})
    response = await me.call("runs/update", {"run_id": run, "end_time": NOW + 5000})
    info = response["run_info"]
    assert (info["status"], info["end_time"]) == ("FAILED", NOW + 5000)


class TestADeletedRun:
    @pytest.mark.parametrize(
        ("path", "args"),
        [
            ("runs/log-metric", {"key": "loss", "value": 1.0, "timestamp": NOW}),
            ("runs/log-parameter", {"key": "lr", "value": "1"}),
            ("runs/set-tag", {"key": "a", "value": "1"}),
            ("runs/update", {"status": "FINISHED"}),
            ("runs/log-inputs", {"datasets": [dataset("digits")]}),
        ],
    )
    async def test_takes_nothing(self, me: MlflowCaller, path: str, args: dict[str, Any]) -> None:
        run = await me.run()
        await me.call("runs/delete", {"run_id": run})
        error = await me.expect_error(path, {"run_id": run, **args})
        assert (error.status, error.code) == (400, INVALID)
        assert error.message == f"The run {run} must be in the 'active' state. Current state is deleted."

    async def test_comes_back_only_after_its_experiment(self, me: MlflowCaller) -> None:
        birds = await me.call("experiments/create", {"name": "birds"})
        run = await me.run(birds["experiment_id"])
        await me.call("experiments/delete", birds)
        error = await me.expect_error("runs/restore", {"run_id": run})
        assert (error.status, error.code) == (400, INVALID)
        assert "'birds'" in error.message
        assert "restore that first" in error.message
        assert (await Run.objects.aget(pk=run)).deleted_at is not None


async def test_a_job_that_still_runs_is_not_deleted(me: MlflowCaller) -> None:
    run, _ = await job_with_token()
    error = await me.expect_error("runs/delete", {"run_id": run.pk})
    assert (error.status, error.code) == (400, INVALID)
    assert "cancel it before you delete it" in error.message
    assert (await Run.objects.aget(pk=run.pk)).deleted_at is None


class TestInputs:
    async def test_need_a_data_set(self, me: MlflowCaller) -> None:
        run = await me.run()
        error = await me.expect_error("runs/log-inputs", {"run_id": run, "datasets": [{"tags": []}]})
        assert (error.code, "'datasets[0].dataset'" in error.message) == (INVALID, True)

    async def test_are_so_many_and_no_more(self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracking.mlflow.inputs.MAX_INPUTS_PER_RUN", 1)
        run = await me.run()
        await me.call("runs/log-inputs", {"run_id": run, "datasets": [dataset("digits")]})
        args = {"run_id": run, "datasets": [dataset("letters")]}
        error = await me.expect_error("runs/log-inputs", args)
        assert (error.code, "a run may have 1 inputs, and this one has 1" in error.message) == (INVALID, True)
        assert await RunInput.objects.acount() == 1

    async def test_that_are_models_stand_beside_the_data_sets(self, me: MlflowCaller) -> None:
        run = await me.run()
        created = await me.call("logged-models", {"experiment_id": "0", "name": "net"})
        model = created["model"]["info"]["model_id"]
        args = {"run_id": run, "models": [{"model_id": model}], "datasets": [dataset("digits")]}
        await me.call("runs/log-inputs", args)
        inputs = (await me.call("runs/get", {"run_id": run}))["run"]["inputs"]
        assert inputs["model_inputs"] == [{"model_id": model}]
        assert [item["dataset"]["name"] for item in inputs["dataset_inputs"]] == ["digits"]

    async def test_are_summed_up_to_a_limit(self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracking.mlflow.inputs.MAX_SUMMARIES", 2)
        datasets = [dataset(name) for name in ("digits", "letters", "signs")]
        await me.call("runs/log-inputs", {"run_id": await me.run(), "datasets": datasets})
        page = await me.call("experiments/search-datasets", {"experiment_ids": ["0"]})
        assert len(page["dataset_summaries"]) == 2


@contextmanager
def missing_table(model: type[Model]) -> Iterator[None]:
    """The table of the model is not there: each of its queries fails in the database."""
    table, elsewhere = map(connection.ops.quote_name, (model._meta.db_table, "elsewhere"))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {elsewhere}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {elsewhere} RENAME TO {table}")


class TestAFault:
    @pytest.mark.parametrize(
        ("model", "path", "args"),
        [
            (RunInput, "experiments/search-datasets", {}),
            (Param, "runs/search", {"order_by": ["params.lr"]}),
        ],
    )
    async def test_of_the_database_lets_the_client_try_again(
        self, me: MlflowCaller, model: type[Model], path: str, args: dict[str, Any]
    ) -> None:
        await me.run()
        args = {"experiment_ids": ["0"], **args}
        missing = missing_table(model)
        await sync_to_async(missing.__enter__)()
        try:
            response = await me.send(path, args)
        finally:
            await sync_to_async(missing.__exit__)(None, None, None)
        error = error_response(response)
        assert (error.status, error.code) == (503, "TEMPORARILY_UNAVAILABLE")
        assert "database does not answer as it should; try again" in error.message
        assert (await me.send(path, args)).status_code == 200

    async def test_of_a_row_that_is_no_longer_what_was_stored_is_the_hubs_own(self, me: MlflowCaller) -> None:
        await me.call("runs/log-inputs", {"run_id": await me.run(), "datasets": [dataset("digits")]})
        await RunInput.objects.aupdate(tags=[])
        error = await me.expect_error("experiments/search-datasets", {"experiment_ids": ["0"]})
        assert (error.status, error.code) == (500, "INTERNAL_ERROR")
        assert error.message == "TrainHub itself failed; the operator finds the traceback in the server log."
