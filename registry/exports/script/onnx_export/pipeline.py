"""Runs the steps of an export in order."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import torch

from .code import SOURCE, find_code
from .comparison import compare, difference_refusal, reference
from .conversion import convert
from .download import fetch
from .example_source import find_example
from .model_loader import load
from .report import OUTPUTS, ExportRefusal, ExportReport
from .request import ExportRequest
from .run_log import format_size, write_line

MODEL = Path("model").absolute()
TARGET = OUTPUTS / "onnx" / "model.onnx"
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")


def export() -> int:
    """Exports the model and returns the exit status: 0, or 1 for a refusal, which the report contains.
    Unexpected errors are raised."""
    report = ExportReport()
    try:
        _export(ExportRequest.read(), report)
    except ExportRefusal as refusal:
        return report.refuse(refusal)
    report.write()
    write_line(f"Wrote {TARGET.relative_to(OUTPUTS.parent)}: it gives what the PyTorch model gives.")
    return 0


def _export(request: ExportRequest, report: ExportReport) -> None:
    versions = {name: version(name) for name in PACKAGES}
    report.add(format="onnx", versions={**versions, "python": platform.python_version()})
    report.add(tolerance={"relative": request.relative, "absolute": request.absolute})
    fetch(request, MODEL)
    # As Python did in the original run, look beside the script first.
    find_code([SOURCE / request.script_folder, SOURCE])
    if SOURCE.is_dir():
        # Where the model's code expects the files that lie beside it.
        os.chdir(SOURCE)
    loaded = load(request, MODEL)
    report.add(file=request.file, kind=loaded.kind)
    example = find_example(request, loaded)
    report.add(example=example.description(example.tensors))
    torch.manual_seed(0)
    reference(loaded.module, example)
    converted = convert(loaded, example, request.opset, TARGET)
    report.add(exporter=converted.exporter, opset=converted.opset, sizes=converted.files)
    write_line(f"Opset {converted.opset}, {format_size(sum(converted.files.values()))}; comparing.")
    comparison = compare(loaded.module, example, TARGET, request)
    report.add(
        inputs=comparison.inputs,
        outputs=comparison.outputs,
        batches=comparison.batches,
        dynamic={
            item.name: {str(axis): name for axis, name in item.dynamic.items()} for item in example.arguments
        },
        differences=[one.to_json() for one in comparison.differences.values()],
    )
    refusal = difference_refusal(comparison, request)
    if refusal is not None:
        raise refusal
