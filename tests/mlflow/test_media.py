"""Tables, figures and HTML that the unmodified client logs at steps are shown in the tab Media."""

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
        mlflow.log_table(pandas.DataFrame({"n": [step + 1]}), f"frames/step_{step}.json")
        mlflow.log_text('{"data":[{"type":"bar","y":[1]}],"layout":{}}', f"plots/step_{step}.json")
        mlflow.log_figure(matplotlib.pyplot.figure(), f"figures/step_{step}.png")
        mlflow.log_text("<h1>Report</h1>", f"report_step_{step}.html")
        mlflow.log_dict({"lr": 0.1}, f"epoch_{step}/config.json")
out["id"], out["experiment"] = run.info.run_id, run.info.experiment_id
"""


@pytest.fixture(scope="module")
def run(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


def test_each_kind_is_a_series(run: dict[str, Any], hub: Hub) -> None:
    number = hub.client().get(f"/api/v1/runs/{run['id']}/").raise_for_status().json()["number"]
    page = page_client(hub).get(f"/runs/{number}/media/").raise_for_status().text
    for key in (*(f"{name}/step_*.json" for name in ("samples", "frames", "plots")), "report_step_*.html"):
        assert f">{key}</h2>" in page
    assert ">figures/step_*.png</h2>" in page
    assert "config.json" not in page


@pytest.mark.parametrize(
    ("path", "kind", "rows"),
    [
        ("samples/step_10.json", "table", [["why?", "2.5"]]),
        ("frames/step_5.json", "table", [["5"], ["6"]]),
        ("plots/step_10.json", "figure", None),
    ],
)
def test_each_step_has_a_preview(
    path: str, kind: str, rows: list[list[str]] | None, run: dict[str, Any], hub: Hub
) -> None:
    root = f"/api/v1/artifacts/previews/{run['experiment']}/{run['id']}/artifacts"
    preview = hub.client().get(f"{root}/{path}").raise_for_status().json()
    assert preview["kind"] == kind
    assert (preview["table"] or {}).get("rows") == rows
