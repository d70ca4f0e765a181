"""Frameworks that log by MLflow's client or to TensorBoard, unchanged, as runs of two processes: their curves
grow live. tests/hosts/test_frameworks.py shows what others log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.hub import FINAL, Hub, eventually
from tests.journeys.runs import Runs, example_spec

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
TRAINING_S = 400
MLFLOW = "/api/2.0/mlflow"
TWO = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}
TORCH = """
import os, time
import mlflow, torch, torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter

dist.init_process_group("gloo")
rank = dist.get_rank()
board = SummaryWriter("outputs/board", flush_secs=1)
net = torch.nn.Linear(1, 1)
if rank == 0:
    mlflow.log_params({"layers": 1, "lr": 0.1})
for step in range(1, 41):
    loss = torch.tensor(1.0 / step)
    dist.all_reduce(loss)
    board.add_scalar("loss", float(loss) + rank, step)
    if rank == 0:
        mlflow.log_metric("mlflow loss", float(loss), step=step)
    time.sleep(0.2)
board.add_hparams({"width": 8.0}, {"final": 1.0})
board.close()
if rank == 0:
    mlflow.end_run()
    # No run is active any more: whose model it is, only the token tells.
    info = mlflow.pytorch.log_model(net, name="net", pip_requirements=["torch"],
        serialization_format="pickle")
    print("logged", info.model_id, flush=True)
dist.barrier()
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Watched:
    """A run that is over; `grew`: how many points a curve had each time it was looked at while the run went
    on."""

    runs: Runs
    id: str
    grew: list[int]

    def get(self, path: str, **params: Any) -> Any:
        return self.runs.client.get(f"{MLFLOW}/{path}", params=params).raise_for_status().json()

    @property
    def data(self) -> dict[str, Any]:
        result: dict[str, Any] = self.get("runs/get", run_id=self.id)["run"]["data"]
        return result

    @property
    def metrics(self) -> dict[str, float]:
        return {item["key"]: float(item["value"]) for item in self.data.get("metrics", ())}

    @property
    def params(self) -> dict[str, str]:
        return {item["key"]: item["value"] for item in self.data.get("params", ())}

    def steps(self, key: str) -> list[int]:
        results = self.get("metrics/get-history", run_id=self.id, metric_key=key)
        return [point["step"] for point in results.get("metrics", ())]

    @property
    def children(self) -> list[dict[str, Any]]:
        return list(self.runs.get(f"/runs/?parent={self.id}")["results"])

    def log(self, name: str = "70_driver_log_0.txt") -> str:
        return self.runs.log(self.id, name).decode(errors="replace")


def watched(hub: Hub, python: str, spec: dict[str, Any], key: str) -> Watched:
    """Run it in the interpreter `python`, looking at the curve `key` all the while."""
    runs = Runs(hub)
    arguments = [spec.pop("script"), *spec.pop("arguments", [])]
    run = runs.submit(
        spec | {"command": [python, *arguments], "environment": {"name": "system", "version": ""}}
    )
    result = Watched(runs, run, [])

    def is_over() -> bool:
        state = runs.detail(run)["state"]
        if state not in FINAL:
            result.grew.append(len(result.steps(key)))
        return state in FINAL

    eventually(is_over, TRAINING_S, f"run {run} is over")
    facts = runs.detail(run)
    logs = {name: runs.log(run, name)[-2000:] for name in runs.logs(run) if name.startswith("70_")}
    assert facts["state"] == "Completed", (facts["sentence"], logs)
    return result


def example(hub: Hub, python: str, name: str, key: str, *arguments: str) -> Watched:
    return watched(hub, python, example_spec(name) | {"arguments": list(arguments)}, key)


def moved(result: Watched, key: str) -> bool:
    """Whether the curve was seen with some of its points while the run went on."""
    return any(0 < count < len(result.steps(key)) for count in result.grew)


# What TestTorch and test_autolog.py try, in another framework.
@pytest.mark.long
class TestKeras:
    def test_logs_by_itself_and_to_tensorboard(self, hub: Hub, frameworks_python: str) -> None:
        result = example(hub, frameworks_python, "tf-keras-fit", "train/epoch_loss", "--epochs", "8")

        assert len(result.steps("loss")) == 8
        assert moved(result, "train/epoch_loss"), result.grew
        # The files are among the run's artifacts too, where autologging has put copies; each is read once.
        eventually(lambda: len(result.steps("validation/epoch_loss")) == 8, 20, "the last numbers are read")
        assert result.metrics["train/epoch_loss"] == pytest.approx(result.metrics["loss"], rel=1e-4)
        assert result.params["epochs"] == "8"
        assert result.children == []


@pytest.fixture(scope="module")
def result(hub: Hub, frameworks_python: str) -> Watched:
    source = {"type": "snapshot", "id": Runs(hub).snapshot(train_py=TORCH)}
    spec = {"source": source, "script": "train.py", "experiment": "plain torch", "distribution": TWO}
    return watched(hub, frameworks_python, spec, "loss")


class TestTorch:
    def test_logs_by_mlflow_alone(self, result: Watched) -> None:
        assert result.steps("mlflow loss") == list(range(1, 41))
        assert result.params | {"width": ""} == {"layers": "1", "lr": "0.1", "width": ""}

    def test_logs_to_tensorboard_below_outputs_live(self, result: Watched) -> None:
        assert moved(result, "loss"), result.grew
        eventually(lambda: len(result.steps("loss")) == 40, 20, "the last numbers are read")

    def test_two_ranks_in_one_folder_have_a_curve_each(self, result: Watched) -> None:
        eventually(lambda: len(result.steps("rank_1/loss")) == 40, 20, "the last numbers are read")
        assert result.metrics["rank_1/loss"] == pytest.approx(result.metrics["loss"] + 1)

    def test_hyperparameters_of_tensorboard_are_params(self, result: Watched) -> None:
        eventually(lambda: "width" in result.params, 20, "the last file is read")
        assert result.params["width"] == "8"

    def test_a_model_that_is_logged_without_a_run_belongs_to_the_job(self, result: Watched) -> None:
        experiment = result.get("runs/get", run_id=result.id)["run"]["info"]["experiment_id"]
        (model_id,) = [line.split()[1] for line in result.log().splitlines() if line.startswith("logged ")]
        model = result.get(f"logged-models/{model_id}")["model"]["info"]
        assert (model["source_run_id"], model["experiment_id"], model["status"]) == (
            result.id,
            experiment,
            "LOGGED_MODEL_READY",
        )
