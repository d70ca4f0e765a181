"""Tables, figures and HTML that the unmodified client logs at steps are series of the tab Media."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.conftest import ClientRunner
from tests.signing_in import page_client

pytestmark = pytest.mark.slow

SCRIPT = """
import pandas
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot

with mlflow.start_run() as run:
    for step in (5, 10):
        mlflow.log_table({"question": ["why?"], "score": [step / 4]}, f"samples/step_{step}.json")
        mlflow.log_table(pandas.DataFrame({"n": [step]}), f"frames/step_{step}.json")
        mlflow.log_text('{"data":[{"type":"bar","y":[1]}],"layout":{}}', f"plots/step_{step}.json")
        mlflow.log_figure(matplotlib.pyplot.figure(), f"figures/step_{step}.png")
        mlflow.log_text("<h1>Report</h1>", f"report_step_{step}.html")
        mlflow.log_dict({"lr": 0.1}, f"epoch_{step}/config.json")
out["id"] = run.info.run_id
"""


@pytest.fixture(scope="module")
def run(client: ClientRunner, hub: Hub) -> dict[str, Any]:
    run_id = client(SCRIPT)["id"]
    row: dict[str, Any] = hub.client().get(f"/api/v1/runs/{run_id}/").raise_for_status().json()
    return row


def test_each_kind_is_a_series(run: dict[str, Any], hub: Hub) -> None:
    page = page_client(hub).get(f"/runs/{run['number']}/media/").text
    for key in (
        "samples/step_*.json",
        "frames/step_*.json",
        "plots/step_*.json",
        "report_step_*.html",
    ):
        assert f">{key}</h2>" in page
    assert ">figures/step_*.png</h2>" in page
    assert "config.json" not in page


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("samples/step_10.json", "<td>why?</td><td>2.5</td>"),
        ("frames/step_5.json", "<td>5</td>"),
        ("plots/step_10.json", "/api/v1/artifacts/figures/"),
        ("report_step_5.html", "/api/v1/artifacts/html/"),
    ],
)
def test_each_step_has_a_preview(path: str, content: str, run: dict[str, Any], hub: Hub) -> None:
    answer = page_client(hub).get(f"/runs/{run['number']}/media/file/", params={"file": path})
    assert content in answer.raise_for_status().text
