"""Models of real runs, registered and exported to ONNX on a node: held against PyTorch, or refused with the
reason."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.examples.table import ALONE, QUICK, Training
from tests.hub import eventually
from tests.journeys.runs import Runs

pytestmark = [pytest.mark.slow, pytest.mark.frameworks]
EXPORTED_S = 240
NET = """
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1
"""
SAVE = "import torch, net\ntorch.save(net.Net(), 'outputs/net.pt')\n"


def registered(runs: Runs, run: str, path: str, model: str) -> None:
    ended = runs.ended(run, 180)
    assert ended["state"] == "Completed", (ended["sentence"], runs.log(run))
    answer = runs.client.post(f"/api/v1/models/{model}/versions/", json={"run": run, "path": path})
    assert answer.status_code == httpx.codes.CREATED, answer.text


def exported(runs: Runs, model: str, **options: Any) -> dict[str, Any]:
    """The export of version 1 once it is over."""
    address = f"/models/{model}/versions/1/exports/"
    answer = runs.client.post(
        f"/api/v1{address}", json={"environment": "system", "dynamic": ["0=batch"], **options}
    )
    assert answer.status_code == httpx.codes.CREATED, answer.text

    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = runs.get(address)[0]
        return found if found["state"] != "waiting" else None

    return eventually(over, EXPORTED_S, f"the export of {model} ends") or {}


def page(runs: Runs, browser: Any, address: str) -> str:
    """What a person reads there."""
    context = browser.new_context(base_url=runs.hub.browser_url)
    tab = context.new_page()
    tab.goto(f"/sign-in/?next={address}")
    tab.fill("input[name=username]", "admin")
    tab.fill("input[name=password]", runs.hub.password)
    tab.press("input[name=password]", "Enter")
    tab.wait_for_url(f"{runs.hub.browser_url}{address}")
    text: str = tab.inner_text("main")
    context.close()
    return text


# tests/registry/exporting runs the script on models of all kinds.
@pytest.mark.long
@pytest.mark.browser
def test_the_digits_model_becomes_a_version_that_gives_the_same(runs: Runs, browser: Any) -> None:
    training = Training("digits-single", {ALONE: ()}, "model.pt", {"arguments": QUICK})
    registered(runs, runs.submit(training.spec()), "model.pt", "digits-onnx")
    found = exported(
        runs, "digits-onnx", file="model.pt", factory="model:make_model", inputs=["images: 1x1x8x8 float32"]
    )
    assert (found["state"], found["version"]) == ("done", 2), (found["message"], runs.log(found["run"]))
    assert found["report"]["differences"][0]["max_absolute"] < 1e-4
    assert "random, batch = 7" in found["report"]["batches"]
    version = runs.get("/models/digits-onnx/versions/2/")
    assert [file["path"] for file in version["files"]] == ["model.onnx"]
    text = page(runs, browser, "/models/digits-onnx/versions/1/")
    assert "Exported" in text
    assert "Largest difference" in text
    assert "ONNX, compared with PyTorch" in page(runs, browser, "/models/digits-onnx/versions/2/")


@pytest.mark.long
@pytest.mark.browser
def test_a_model_that_cannot_be_exported_is_refused_with_the_reason(runs: Runs, browser: Any) -> None:
    source = {"type": "snapshot", "id": runs.snapshot(main_py=SAVE, net_py=NET)}
    registered(runs, runs.submit({"source": source, "script": "main.py"}), "net.pt", "branching")
    found = exported(runs, "branching", file="net.pt", inputs=["2x4"])
    reason = "depends on the values of its input (net.py, line 7: `return x * 2 if x.sum() > 0 else x - 1`)"
    assert found["state"] == "refused"
    assert reason in found["message"]
    assert runs.detail(found["run"])["cause"]["kind"] == "export_refused"
    assert runs.get("/models/branching/versions/")[0]["version"] == 1
    assert reason in page(runs, browser, "/models/branching/versions/1/")
