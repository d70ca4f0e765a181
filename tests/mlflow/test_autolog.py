"""What libraries log by themselves, and whole models: everything that a script gets without a call of its
own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mlflow.conftest import ClientRunner

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

mlflow.set_experiment("autolog")
data, target = load_iris(return_X_y=True)
mlflow.sklearn.autolog()
with mlflow.start_run() as run:
    LogisticRegression(max_iter=200).fit(data, target)
found = mlflow.get_run(run.info.run_id)
out["metrics"] = sorted(found.data.metrics)
out["params"] = found.data.params
out["inputs"] = len(found.inputs.dataset_inputs)
out["files"] = sorted(item.path for item in client.list_artifacts(run.info.run_id))
models = mlflow.search_logged_models([found.info.experiment_id], output_format="list")
out["models"] = [[model.name, str(model.status), model.source_run_id == run.info.run_id] for model in models]
out["scores"] = sorted(metric.key for metric in models[0].metrics)
out["outputs"] = [item.model_id == models[0].model_id for item in found.outputs.model_outputs]
loaded = mlflow.sklearn.load_model(f"models:/{models[0].model_id}")
out["predicts"] = loaded.predict(data[:1]).tolist()
out["by run"] = mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/model").predict(data[:1]).tolist()

with mlflow.start_run(run_name="grid") as grid:
    GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.1, 1.0]}, cv=2).fit(data, target)
children = mlflow.search_runs(["" + found.info.experiment_id],
    filter_string=f"tags.mlflow.parentRunId = '{grid.info.run_id}'", output_format="list")
out["grid"] = sorted(child.data.params["C"] for child in children)
mlflow.sklearn.autolog(disable=True)

class Doubles(mlflow.pyfunc.PythonModel):
    def predict(self, model_input: list[float], params=None) -> list[float]:
        return [2 * number for number in model_input]

with mlflow.start_run():
    info = mlflow.pyfunc.log_model(name="doubles", python_model=Doubles(), params={"by": 2},
        tags={"kind": "toy"})
    mlflow.log_metric("score", 1.0)
out["doubles"] = mlflow.pyfunc.load_model(info.model_uri).predict([1.5, 2.0])
logged = mlflow.get_logged_model(info.model_id)
out["toy"] = [logged.params, logged.tags["kind"], str(logged.status)]
out["model files"] = sorted(item.path for item in client.list_logged_model_artifacts(info.model_id)) \
    if hasattr(client, "list_logged_model_artifacts") else []
"""


@pytest.fixture(scope="module")
def results(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


class TestAutologging:
    def test_keeps_metrics_params_data_and_files(self, results: dict[str, Any]) -> None:
        assert "training_accuracy_score" in results["metrics"]
        assert results["params"]["max_iter"] == "200"
        assert results["inputs"] == 1
        assert "training_confusion_matrix.png" in results["files"]

    def test_keeps_the_model_with_its_scores(self, results: dict[str, Any]) -> None:
        assert results["models"] == [["model", "READY", True]]
        assert "training_accuracy_score" in results["scores"]
        assert results["outputs"] == [True]

    def test_gives_the_model_back(self, results: dict[str, Any]) -> None:
        assert results["predicts"] == results["by run"] == [0]

    def test_nests_the_runs_of_a_search(self, results: dict[str, Any]) -> None:
        assert results["grid"] == ["0.1", "1.0"]


class TestAModelOfOnesOwn:
    def test_is_logged_and_loaded(self, results: dict[str, Any]) -> None:
        assert results["doubles"] == [3.0, 4.0]
        assert results["toy"] == [{"by": "2"}, "toy", "READY"]
