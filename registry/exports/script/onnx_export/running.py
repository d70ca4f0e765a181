"""The steps of an export, one after the other."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import torch

from .code import SOURCE, find_code
from .comparing import apart, compare, reference
from .converting import convert
from .fetching import fetch
from .given import example_of
from .loading import load
from .reporting import OUTPUTS, Refusal, Report
from .told import say, size_of
from .wanted import Wanted

MODEL = Path("model").absolute()
TARGET = OUTPUTS / "onnx" / "model.onnx"
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")


def export() -> int:
    """The exit code: 0, or 1 for a refusal, which stands in the report. What nobody foresaw is raised."""
    report = Report()
    try:
        _export(Wanted.read(), report)
    except Refusal as refusal:
        return report.refuse(refusal)
    report.write()
    say(f"Wrote {TARGET.relative_to(OUTPUTS.parent)}: it gives what the PyTorch model gives.")
    return 0


def _export(wanted: Wanted, report: Report) -> None:
    versions = {name: version(name) for name in PACKAGES}
    report.add(format="onnx", versions={**versions, "python": platform.python_version()})
    report.add(tolerance={"relative": wanted.relative, "absolute": wanted.absolute})
    fetch(wanted, MODEL)
    find_code([SOURCE / wanted.script_folder, SOURCE])
    if SOURCE.is_dir():
        # Where the model's code expects the files that lie beside it.
        os.chdir(SOURCE)
    loaded = load(wanted, MODEL)
    report.add(file=wanted.file, kind=loaded.kind)
    example = example_of(wanted, loaded)
    report.add(example=example.shown(example.tensors))
    torch.manual_seed(0)
    reference(loaded.module, example)
    converted = convert(loaded, example, wanted.opset, TARGET)
    report.add(exporter=converted.exporter, opset=converted.opset, sizes=converted.files)
    say(f"Opset {converted.opset}, {size_of(sum(converted.files.values()))}; comparing.")
    found = compare(loaded.module, example, TARGET, wanted)
    report.add(
        inputs=found.inputs,
        outputs=found.outputs,
        batches=found.batches,
        dynamic={
            item.name: {str(axis): name for axis, name in item.dynamic.items()} for item in example.arguments
        },
        differences=[one.to_json() for one in found.differences.values()],
    )
    refusal = apart(found, wanted)
    if refusal is not None:
        raise refusal
