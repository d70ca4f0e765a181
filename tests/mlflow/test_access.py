"""Who may do what by the protocol: people by their role, jobs to themselves, strangers nothing."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from jobs import external, lifecycle
from jobs.models import Run
from jobs.states import Reason, RunState
from tests.mlflow.raw import Caller, job_with_token, opened, token_elsewhere, viewer_token

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
    @pytest.mark.parametrize(("path", "asked"), WRITES)
    async def test_learns_nothing_of_a_run(self, me: Caller, path: str, asked: dict[str, object]) -> None:
        run = await me.run()
        await me.told("runs/log-metric", {"run_id": run, "key": "loss", "value": 1.0, "timestamp": NOW})
        other = Caller(me.client, await token_elsewhere())
        found = await other.refused(path, {"run_id": run, **asked})
        unknown = await other.refused(path, {"run_id": "f" * 32, **asked})
        assert (found.status, found.code) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert found.message.replace(run, "f" * 32) == unknown.message

    async def test_reads_nothing(self, me: Caller) -> None:
        birds = (await me.told("experiments/create", {"name": "birds"}))["experiment_id"]
        run = await me.run(birds)
        model = (await me.told("logged-models", {"experiment_id": birds, "name": "net"}))["model"]["info"]
        other = Caller(me.client, await token_elsewhere())
        for path, asked in (
            ("runs/get", {"run_id": run}),
            ("metrics/get-history", {"run_id": run, "metric_key": "loss"}),
            ("metrics/get-history-bulk", {"run_id": run, "metric_key": "loss"}),
            ("metrics/get-history-bulk-interval", {"run_ids": run, "metric_key": "loss"}),
            ("experiments/get", {"experiment_id": model["experiment_id"]}),
        ):
            assert (await other.refused(path, asked)).status == 404
        assert (await other.refused(f"logged-models/{model['model_id']}", method="GET")).status == 404
        assert await other.told("runs/search", {"experiment_ids": [model["experiment_id"]]}) == {}
        assert await other.told("logged-models/search", {"experiment_ids": [model["experiment_id"]]}) == {}
        assert [item["name"] for item in (await other.told("experiments/search", {}))["experiments"]] == [
            "default"
        ]


class TestAViewer:
    @pytest.mark.parametrize(
        ("path", "asked"), [*WRITES, ("runs/create", {}), ("experiments/create", {"name": "x"})]
    )
    async def test_changes_nothing(self, me: Caller, path: str, asked: dict[str, object]) -> None:
        run = await me.run()
        viewer = Caller(me.client, await viewer_token())
        found = await viewer.refused(path, {"run_id": run, **asked})
        assert (found.status, found.code) == (403, "PERMISSION_DENIED")

    async def test_reads(self, me: Caller) -> None:
        run = await me.run()
        viewer = Caller(me.client, await viewer_token())
        assert (await viewer.told("runs/get", {"run_id": run}))["run"]["info"]["run_id"] == run


class TestNobody:
    @pytest.mark.parametrize("token", ["", "thr_of-no-attempt", "th_unknown"])
    async def test_is_told_how_to_be_somebody(self, me: Caller, token: str) -> None:
        for path in ("runs/log-metric", "runs/get", "experiments/search", "traces/search"):
            found = await Caller(me.client, token).refused(path, {"run_id": "f" * 32})
            assert (found.status, found.code) == (401, "UNAUTHENTICATED")
            assert "MLFLOW_TRACKING_TOKEN" in found.message

    async def test_sees_that_the_server_is_there(self) -> None:
        async with opened() as client:
            assert (await client.get("/health")).text == "OK"
            assert (await client.get("/version")).text == "3.17.2"
            assert (await client.get("/api/3.0/mlflow/server-info")).json()["workspaces_enabled"] is False


class TestAJob:
    @pytest.mark.parametrize(("path", "asked"), WRITES)
    async def test_writes_to_no_other_run(self, me: Caller, path: str, asked: dict[str, object]) -> None:
        other = await me.run()
        _, token = await job_with_token()
        found = await Caller(me.client, token).refused(path, {"run_id": other, **asked})
        assert (found.status, found.code) == (403, "PERMISSION_DENIED")

    async def test_writes_to_what_it_has_opened(self, me: Caller) -> None:
        run, token = await job_with_token()
        job = Caller(me.client, token)
        made = await job.run()
        await job.told("runs/log-metric", {"run_id": made, "key": "loss", "value": 1.0, "timestamp": NOW})
        await job.told("runs/update", {"run_id": made, "status": "FINISHED"})
        found = await Run.objects.aget(pk=made)
        assert (found.parent_id, found.kind, found.state) == (run.pk, "external", "Completed")

    async def test_is_not_moved_by_what_its_client_says(self, me: Caller) -> None:
        run, token = await job_with_token()
        job = Caller(me.client, token)
        told = await job.told("runs/update", {"run_id": run.pk, "status": "FAILED", "end_time": NOW})
        assert told["run_info"]["status"] == "RUNNING"
        await run.arefresh_from_db()
        assert (run.state, run.finished_at) == ("Running", None)
        tags = {
            item["key"]: item["value"]
            for item in (await job.told("runs/get", {"run_id": run.pk}))["run"]["data"]["tags"]
        }
        assert tags["mlflow.client.status"] == "FAILED"

    async def test_is_not_moved_by_a_person_either(self, me: Caller) -> None:
        run, _ = await job_with_token()
        await me.told("runs/update", {"run_id": run.pk, "status": "KILLED"})
        await run.arefresh_from_db()
        assert run.state == "Running"

    async def test_loses_its_token_with_its_attempt(self, me: Caller) -> None:
        run, token = await job_with_token()
        await sync_to_async(lifecycle.advance)(
            run.pk, RunState.FAILED, Reason.INTERNAL, facts={"detail": "x"}
        )
        found = await Caller(me.client, token).refused(
            "runs/set-tag", {"run_id": run.pk, "key": "a", "value": "1"}
        )
        assert found.status == 401

    async def test_logs_after_its_end_by_a_person(self, me: Caller) -> None:
        run, _ = await job_with_token()
        await sync_to_async(lifecycle.advance)(
            run.pk, RunState.FAILED, Reason.INTERNAL, facts={"detail": "x"}
        )
        await me.told("runs/log-metric", {"run_id": run.pk, "key": "score", "value": 0.5, "timestamp": NOW})

    async def test_tags_its_own_experiment_alone(self, me: Caller) -> None:
        other = (await me.told("experiments/create", {"name": "others"}))["experiment_id"]
        _, token = await job_with_token()
        job = Caller(me.client, token)
        tag = {"key": "a", "value": "1"}
        assert await job.told("experiments/set-experiment-tag", {"experiment_id": "0", **tag}) == {}
        for path in ("experiments/set-experiment-tag", "experiments/delete-experiment-tag"):
            assert (await job.refused(path, {"experiment_id": other, **tag})).code == "PERMISSION_DENIED"

    async def test_finds_its_own_experiment_under_a_name_that_is_not_there(self, me: Caller) -> None:
        run, token = await job_with_token(experiment="birds")
        job = Caller(me.client, token)
        for path, asked in (
            ("experiments/get-by-name", {"experiment_name": "whatever"}),
            ("experiments/get", {"experiment_id": "0"}),
        ):
            assert (await job.told(path, asked))["experiment"]["experiment_id"] == str(run.experiment_id)
        assert (await me.refused("experiments/get-by-name", {"experiment_name": "whatever"})).status == 404


class TestARunFromElsewhere:
    async def test_is_not_touched_by_the_verbs_of_jobs(self, me: Caller) -> None:
        made = await Run.objects.aget(pk=await me.run())
        assert not await sync_to_async(lifecycle.advance)(made.pk, RunState.QUEUED)

    async def test_cannot_be_moved_to_a_state_of_jobs(self, me: Caller) -> None:
        made = await Run.objects.aget(pk=await me.run())
        with pytest.raises(ValueError, match="Queued"):
            await sync_to_async(external.move)(made, RunState.QUEUED, None)
