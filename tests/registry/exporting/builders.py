"""A version whose run has a source, an export of it under way, and a node that is played by hand."""

from __future__ import annotations

import json
from typing import Any

from environments.curated import ONNX
from jobs.models import Run
from jobs.scheduling import run_actions
from registry.exports.export_start import start
from registry.exports.options import Options
from registry.models import Export, ModelVersion
from registry.registration import register
from tests.environments.locks import locked_curated
from tests.jobs.builders import Played, ended, node, snapshot
from tests.people import make_contributor, make_workspace, principal_of
from tests.registry.builders import add_output, blob, run_with
from trainhub_launch.report import OutputFile

SOURCE = {
    "README.md": "digits\n",
    "src/train.py": "from model import make_model\n",
    "src/model.py": "def make_model(width=3):\n    pass\n\n\ndef grow(by):\n    pass\n",
}
TYPED = Options(
    file="model.pt",
    inputs=("images: 1x1x8x8 float32",),
    dynamic=("0=batch",),
    factory="model:make_model",
    cluster="local",
)
FOUND: dict[str, Any] = {
    "format": "onnx",
    "exporter": "torch.export",
    "kind": "state_dict",
    "opset": 20,
    "versions": {"torch": "2.13.0", "onnxruntime": "1.31.1"},
    "tolerance": {"relative": 1e-4, "absolute": 1e-5},
    "inputs": [{"name": "images", "dtype": "float", "shape": ["batch", 1, 8, 8]}],
    "outputs": [{"name": "logits", "dtype": "float", "shape": ["batch", 10]}],
    "batches": ["example", "random, batch = 3"],
    "differences": [
        {
            "output": "logits",
            "max_absolute": 2.9e-8,
            "max_relative": 4.5e-5,
            "within": True,
            "batch": "random, batch = 3",
        }
    ],
}
REFUSAL = "model.pt holds only weights; name the function of the run's source that makes the module."


def version(*more: str, path: str = "saved") -> ModelVersion:
    """Version 1 of digits: saved/ of run 41 with model.pt and `more`, trained by src/train.py."""
    run = run_with("saved/model.pt", *(f"saved/{name}" for name in more))
    source = snapshot(principal_of(make_contributor()), SOURCE)
    run.spec = {"source": {"type": "snapshot", "id": source.sha256}, "script": "src/train.py"}
    run.state = "Completed"
    run.save(update_fields=["spec", "state"])
    return register(make_workspace(), "digits", run, path, make_contributor())


def started(options: Options = TYPED) -> tuple[Export, Played]:
    """An export that has a node, which has taken it."""
    played = Played(node())
    locked_curated(ONNX)
    export = start(version(), options, principal_of(make_contributor()))
    run = run_of(export)
    run_actions.launch(run.pk)
    played.claim(run)
    return export, played


def run_of(export: Export) -> Run:
    assert export.run is not None
    export.run.refresh_from_db()
    return export.run


def ends(export: Export, played: Played, report: Any, *, code: int = 0, model: bool = True) -> None:
    """The node uploads what the script left and tells of its end."""
    files = {"export-report.json": report if isinstance(report, bytes) else json.dumps(report).encode()}
    if model:
        files["onnx/model.onnx"] = b"onnx"
    run = run_of(export)
    left = tuple(OutputFile(path, len(data), blob(data)) for path, data in files.items())
    played.finish(run, ended(0, code), outputs=left)
    assert run_of(export).state == ("Completed" if code == 0 else "Failed")


def with_example(found: ModelVersion) -> str:
    assert found.run is not None
    add_output(found.run, "batch.npz")
    return "outputs/batch.npz"
