"""Keys that are stored shortened, and models of runs that are elsewhere."""

from __future__ import annotations

from tests.mlflow.raw import MlflowCaller


async def test_the_history_of_a_long_key_is_found_by_its_full_name(
    me: MlflowCaller,
) -> None:
    run, key = await me.run(), "k" * 300
    await me.call("runs/log-metric", {"run_id": run, "key": key, "value": 0.5, "timestamp": 1})
    for path, name in (("get-history", "run_id"), ("get-history-bulk-interval", "run_ids")):
        args = {name: run, "metric_key": key}
        found = (await me.call(f"metrics/{path}", args, "GET"))["metrics"]
        assert [item["value"] for item in found] == [0.5], path


async def test_an_experiments_tag_is_deleted_by_its_full_key(me: MlflowCaller) -> None:
    experiment = (await me.call("experiments/create", {"name": "tagged"}))["experiment_id"]
    tag = {"experiment_id": experiment, "key": "k" * 300}
    await me.call("experiments/set-experiment-tag", {**tag, "value": "x"})
    await me.call("experiments/delete-experiment-tag", tag)
    found = await me.call("experiments/get", {"experiment_id": experiment})
    assert "tags" not in found["experiment"]


async def test_a_model_that_is_an_output_twice_counts_with_its_last_step(me: MlflowCaller) -> None:
    run = await me.run()
    made = await me.call("logged-models", {"experiment_id": "0", "name": "net", "source_run_id": run})
    model = made["model"]["info"]["model_id"]
    outputs = [{"model_id": model, "step": step} for step in (1, 2)]
    await me.call("runs/outputs", {"run_id": run, "models": outputs})
    found = await me.call("runs/get", {"run_id": run})
    assert [item["step"] for item in found["run"]["outputs"]["model_outputs"]] == [2]


async def test_a_model_is_found_by_a_run_that_is_not_here(me: MlflowCaller) -> None:
    source = "f" * 32
    await me.call("logged-models", {"experiment_id": "0", "name": "net", "source_run_id": source})
    args = {"experiment_ids": ["0"], "filter": f"source_run_id = '{source}'"}
    assert len((await me.call("logged-models/search", args))["models"]) == 1
