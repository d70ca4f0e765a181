"""Who may do what by the protocol: people by their role, jobs to themselves, strangers nothing."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from jobs import external, lifecycle
from jobs.models import Run
from jobs.states import Reason, RunState
from tests.mlflow.raw import (
    ROOT,
    MlflowCaller,
    error_response,
    job_with_token,
    open_client,
    other_workspace_token,
    viewer_token,
)

NOW = 1_700_000_000_000
WRITES: tuple[tuple[str, dict[str, object]], ...] = (
    ("runs/log-metric", {"key": "loss", "value": 1.0, "timestamp": NOW}),
    ("runs/log-batch", {"metrics": [{"key": "loss", "value": 1.0, "timestamp": NOW}]}),
    ("runs/log-batch", {"params": [{"key": "lr", "value": "1"}]}),
    ("runs/log-parameter", {"key": "lr", "value": "1"}),
    ("runs/set-tag", {"key": "a", "value": "1"}),
    ("runs/delete-tag", {"key": "a"}),
    ("runs/update", {"status": "FINISHED"}),
    ("runs/delete", {}),
    ("runs/log-inputs", {"datasets": []}),
    ("runs/outputs", {"models": []}),
    ("runs/log-model", {"model_json": "{}"}),
)


class TestAnotherWorkspace:
    @pytest.mark.parametrize(("path", "args"), WRITES)
    async def test_learns_nothing_of_a_run(
        self, me: MlflowCaller, path: str, args: dict[str, object]
    ) -> None:
        run = await me.run()
        await me.call("runs/log-metric", {"run_id": run, "key": "loss", "value": 1.0, "timestamp": NOW})
        other = MlflowCaller(me.client, await other_workspace_token())
        result = await other.expect_error(path, {"run_id": run, **args})
        unknown = await other.expect_error(path, {"run_id": "f" * 32, **args})
        assert (result.status, result.code) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert result.message.replace(run, "f" * 32) == unknown.message

    async def test_reads_nothing(self, me: MlflowCaller) -> None:
        birds = (await me.call("experiments/create", {"name": "birds"}))["experiment_id"]
        run = await me.run(birds)
        model = (await me.call("logged-models", {"experiment_id": birds, "name": "net"}))["model"]["info"]
        other = MlflowCaller(me.client, await other_workspace_token())
        for path, args in (
            ("runs/get", {"run_id": run}),
            ("metrics/get-history", {"run_id": run, "metric_key": "loss"}),
            ("metrics/get-history-bulk", {"run_id": run, "metric_key": "loss"}),
            ("metrics/get-history-bulk-interval", {"run_ids": run, "metric_key": "loss"}),
            ("experiments/get", {"experiment_id": model["experiment_id"]}),
        ):
            assert (await other.expect_error(path, args)).status == 404
        assert (await other.expect_error(f"logged-models/{model['model_id']}", method="GET")).status == 404
        assert await other.call("runs/search", {"experiment_ids": [model["experiment_id"]]}) == {}
        assert await other.call("logged-models/search", {"experiment_ids": [model["experiment_id"]]}) == {}
        assert [item["name"] for item in (await other.call("experiments/search", {}))["experiments"]] == [
            "default"
        ]


class TestAViewer:
    @pytest.mark.parametrize(
        ("path", "args"), [*WRITES, ("runs/create", {}), ("experiments/create", {"name": "x"})]
    )
    async def test_changes_nothing(self, me: MlflowCaller, path: str, args: dict[str, object]) -> None:
        run = await me.run()
        viewer = MlflowCaller(me.client, await viewer_token())
        result = await viewer.expect_error(path, {"run_id": run, **args})
        assert (result.status, result.code) == (403, "PERMISSION_DENIED")

    async def test_reads(self, me: MlflowCaller) -> None:
        run = await me.run()
        viewer = MlflowCaller(me.client, await viewer_token())
        assert (await viewer.call("runs/get", {"run_id": run}))["run"]["info"]["run_id"] == run


class TestNobody:
    @pytest.mark.parametrize("token", ["", "thr_of-no-attempt", "th_unknown"])
    async def test_is_told_how_to_be_somebody(self, me: MlflowCaller, token: str) -> None:
        for path in ("runs/log-metric", "runs/get", "experiments/search", "traces/search"):
            result = await MlflowCaller(me.client, token).expect_error(path, {"run_id": "f" * 32})
            assert (result.status, result.code) == (401, "UNAUTHENTICATED")
            assert "MLFLOW_TRACKING_TOKEN" in result.message

    async def test_sees_that_the_server_is_there(self) -> None:
        async with open_client() as client:
            assert (await client.get("/health")).text == "OK"
            assert (await client.get("/version")).text == "3.17.2"
            assert (await client.get("/api/3.0/mlflow/server-info")).json()["workspaces_enabled"] is True


class TestANameAndAPassword:
    """As MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."""

    async def test_are_a_token_under_any_name(self, me: MlflowCaller) -> None:
        run = await me.run()
        response = await me.client.get(f"{ROOT}/runs/get", params={"run_id": run}, auth=("anybody", me.token))
        assert response.status_code == 200
        assert response.json()["run"]["info"]["run_id"] == run

    @pytest.mark.parametrize("text", ["", "%%%", "//79", "Y2FybDo=", "Y2FybA==", "Y2FybDpzZWNyZXQ="])
    async def test_that_hold_no_token_are_nobody(self, me: MlflowCaller, text: str) -> None:
        headers = {"Authorization": f"Basic {text}"}
        error = error_response(await me.client.get(f"{ROOT}/experiments/search", headers=headers))
        assert (error.status, error.code) == (401, "UNAUTHENTICATED")


class TestAJob:
    @pytest.mark.parametrize(("path", "args"), WRITES)
    async def test_writes_to_no_other_run(self, me: MlflowCaller, path: str, args: dict[str, object]) -> None:
        other = await me.run()
        _, token = await job_with_token()
        result = await MlflowCaller(me.client, token).expect_error(path, {"run_id": other, **args})
        assert (result.status, result.code) == (403, "PERMISSION_DENIED")

    async def test_writes_to_what_it_has_opened(self, me: MlflowCaller) -> None:
        run, token = await job_with_token()
        job = MlflowCaller(me.client, token)
        created = await job.run()
        await job.call("runs/log-metric", {"run_id": created, "key": "loss", "value": 1.0, "timestamp": NOW})
        await job.call("runs/update", {"run_id": created, "status": "FINISHED"})
        result = await Run.objects.aget(pk=created)
        assert (result.parent_id, result.kind, result.state) == (run.pk, "external", "Completed")

    async def test_is_not_moved_by_what_its_client_says(self, me: MlflowCaller) -> None:
        run, token = await job_with_token()
        job = MlflowCaller(me.client, token)
        results = await job.call("runs/update", {"run_id": run.pk, "status": "FAILED", "end_time": NOW})
        assert results["run_info"]["status"] == "RUNNING"
        await run.arefresh_from_db()
        assert (run.state, run.finished_at) == ("Running", None)
        tags = {
            item["key"]: item["value"]
            for item in (await job.call("runs/get", {"run_id": run.pk}))["run"]["data"]["tags"]
        }
        assert tags["mlflow.client.status"] == "FAILED"

    async def test_is_not_moved_by_a_person_either(self, me: MlflowCaller) -> None:
        run, _ = await job_with_token()
        await me.call("runs/update", {"run_id": run.pk, "status": "KILLED"})
        await run.arefresh_from_db()
        assert run.state == "Running"

    async def test_loses_its_token_with_its_attempt(self, me: MlflowCaller) -> None:
        run, token = await job_with_token()
        await sync_to_async(lifecycle.advance)(
            run.pk, RunState.FAILED, Reason.INTERNAL, facts={"detail": "x"}
        )
        result = await MlflowCaller(me.client, token).expect_error(
            "runs/set-tag", {"run_id": run.pk, "key": "a", "value": "1"}
        )
        assert result.status == 401

    async def test_logs_after_its_end_by_a_person(self, me: MlflowCaller) -> None:
        run, _ = await job_with_token()
        await sync_to_async(lifecycle.advance)(
            run.pk, RunState.FAILED, Reason.INTERNAL, facts={"detail": "x"}
        )
        await me.call("runs/log-metric", {"run_id": run.pk, "key": "score", "value": 0.5, "timestamp": NOW})

    async def test_tags_its_own_experiment_alone(self, me: MlflowCaller) -> None:
        other = (await me.call("experiments/create", {"name": "others"}))["experiment_id"]
        _, token = await job_with_token()
        job = MlflowCaller(me.client, token)
        tag = {"key": "a", "value": "1"}
        assert await job.call("experiments/set-experiment-tag", {"experiment_id": "0", **tag}) == {}
        for path in ("experiments/set-experiment-tag", "experiments/delete-experiment-tag"):
            assert (await job.expect_error(path, {"experiment_id": other, **tag})).code == "PERMISSION_DENIED"

    async def test_finds_its_own_experiment_under_a_name_that_is_not_there(self, me: MlflowCaller) -> None:
        run, token = await job_with_token(experiment="birds")
        job = MlflowCaller(me.client, token)
        for path, args in (
            ("experiments/get-by-name", {"experiment_name": "whatever"}),
            ("experiments/get", {"experiment_id": "0"}),
        ):
            assert (await job.call(path, args))["experiment"]["experiment_id"] == str(run.experiment_id)
        assert (
            await me.expect_error("experiments/get-by-name", {"experiment_name": "whatever"})
        ).status == 404


class TestARunFromElsewhere:
    async def test_is_not_touched_by_the_verbs_of_jobs(self, me: MlflowCaller) -> None:
        created = await Run.objects.aget(pk=await me.run())
        assert not await sync_to_async(lifecycle.advance)(created.pk, RunState.QUEUED)

    async def test_cannot_be_moved_to_a_state_of_jobs(self, me: MlflowCaller) -> None:
        created = await Run.objects.aget(pk=await me.run())
        with pytest.raises(ValueError, match="Queued"):
            await sync_to_async(external.set_state)(created, RunState.QUEUED, None)
