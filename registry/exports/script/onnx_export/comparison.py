"""Compares the ONNX model, run by onnxruntime, with the PyTorch model on the example and on random
batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch.utils._pytree import tree_leaves

from .code import error_text
from .example_input import ExampleInput
from .report import ExportRefusal
from .request import ExportRequest
from .run_log import write_line


@dataclass
class Difference:
    """The largest difference of one output over all batches. `relative` counts only where PyTorch's value
    exceeds the absolute tolerance."""

    output: str
    absolute: float = 0.0
    relative: float = 0.0
    batch: str = ""
    within: bool = True

    def to_json(self) -> dict[str, object]:
        return {
            "output": self.output,
            "max_absolute": _number(self.absolute),
            "max_relative": _number(self.relative),
            "within": self.within,
            "batch": self.batch,
        }


@dataclass
class OutputComparison:
    """The result of a comparison. `inputs` and `outputs`: [{name, dtype, shape}], with names for dynamic
    axes. `batches`: descriptions of the compared batches."""

    inputs: list[dict[str, object]]
    outputs: list[dict[str, Any]]
    differences: dict[str, Difference] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)


def reference(module: object, example: ExampleInput) -> None:
    """Checks that PyTorch itself accepts the example, and returns equal values when called twice. Raises
    ExportRefusal."""
    try:
        first, again = (_torch(module, example, example.tensors) for _ in range(2))
    except Exception as error:
        inputs = example.description(example.tensors)
        raise ExportRefusal(
            f"The model does not take the example input {inputs}: {error_text(error)}", "inputs"
        ) from error
    if not first:
        raise ExportRefusal("The model gives no tensor for the example input.", "inputs")
    if any(
        not torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
        for one, other in zip(first, again, strict=True)
    ):
        raise ExportRefusal(
            "The model gives other values each time it is called, even in eval mode, so nothing can be "
            "compared."
        )


def compare(module: object, example: ExampleInput, path: Path, request: ExportRequest) -> OutputComparison:
    """Runs both models on all batches and returns the differences. Raises ExportRefusal if onnxruntime cannot
    run the model or the shapes differ."""
    session = _session(path)
    comparison = OutputComparison(_describe(session.get_inputs()), _describe(session.get_outputs()))
    other_sizes: list[str] = []
    for word, tensors in (("example", example.tensors), *example.batches()):
        try:
            expected = _torch(module, example, tensors)
        except Exception as error:
            # `reference` has already run the example, so an error here is not one of the model.
            if word == "example":
                raise
            other_sizes.append(f"with {example.description(tensors)} PyTorch fails too: {error_text(error)}")
            continue
        _compare_values(comparison, word, expected, _onnx(session, example, tensors, word), request)
    # The example and three batches; fewer mean that PyTorch itself failed with other sizes.
    if len(comparison.batches) < 4 and other_sizes:
        raise ExportRefusal(f"The dynamic axes do not take other sizes: {other_sizes[0]}", "dynamic")
    for one in comparison.differences.values():
        write_line(f"Output {one.output}: at most {one.absolute:.1e} apart, relative {one.relative:.1e}.")
    return comparison


def _session(path: Path) -> Any:
    try:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ExportRefusal(
            f"onnxruntime cannot load what was exported: {error_text(error)}", "opset"
        ) from error


def _describe(values: list[Any]) -> list[dict[str, object]]:
    return [
        {
            "name": one.name,
            "dtype": one.type.removeprefix("tensor(").removesuffix(")"),
            "shape": list(one.shape),
        }
        for one in values
    ]


def _torch(module: Any, example: ExampleInput, tensors: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        # Copies, as a module may change its input in place.
        outputs = example.call(module, tuple(tensor.clone() for tensor in tensors))
    return [
        torch.as_tensor(leaf) for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor | int | float)
    ]


def _onnx(session: Any, example: ExampleInput, tensors: tuple[Any, ...], word: str) -> list[object]:
    # The exporter leaves out inputs that the graph does not use.
    names = {one.name for one in session.get_inputs()}
    pairs = zip(example.arguments, tensors, strict=True)
    try:
        values: list[Any] = session.run(
            None, {item.name: tensor.numpy() for item, tensor in pairs if item.name in names}
        )
    except Exception as error:
        raise ExportRefusal(
            f"PyTorch takes {example.description(tensors)} ({word}), the ONNX model does not: "
            f"{error_text(error)}",
            "dynamic",
        ) from error
    return values


def _compare_values(
    comparison: OutputComparison, word: str, expected: list[Any], actual: list[Any], request: ExportRequest
) -> None:
    if len(expected) != len(actual):
        raise ExportRefusal(
            f"PyTorch gives {len(expected)} outputs, the ONNX model {len(actual)}; they cannot be compared."
        )
    for described, one, other in zip(comparison.outputs, expected, actual, strict=True):
        name = described["name"]
        if tuple(one.shape) != other.shape:
            raise ExportRefusal(
                f"The output {name} has the shape {tuple(one.shape)} in PyTorch and {other.shape} in ONNX "
                f"({word})."
            )
        difference = comparison.differences.setdefault(name, Difference(name))
        _record_difference(
            difference,
            word,
            # NumPy has no bfloat16.
            _wide(one.float().numpy() if one.dtype == torch.bfloat16 else one.numpy()),
            _wide(other),
            request,
        )
    comparison.batches.append(word)


def _wide(values: Any) -> object:
    # In double precision differences of float16 do not overflow, and those of uint8 do not wrap around.
    return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def _record_difference(
    difference: Difference, word: str, expected: Any, actual: Any, request: ExportRequest
) -> None:
    """Adds the differences of one batch. NaN on both sides, or the same infinity, counts as equal."""
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    with np.errstate(invalid="ignore"):
        distances = np.where(same, 0.0, np.abs(expected - actual))
    # NaN on one side only counts as an infinite difference.
    distances = np.where(np.isnan(distances), np.inf, distances)
    size = np.abs(np.nan_to_num(expected))
    counted = size > request.absolute
    absolute = float(distances.max(initial=0.0))
    relative = float((distances[counted] / size[counted]).max(initial=0.0))
    if absolute > difference.absolute or not difference.batch:
        difference.batch = word
    difference.absolute = max(difference.absolute, absolute)
    difference.relative = max(difference.relative, relative)
    difference.within = difference.within and bool(
        (distances <= request.absolute + request.relative * size).all()
    )


def difference_refusal(comparison: OutputComparison, request: ExportRequest) -> ExportRefusal | None:
    """Returns the refusal of a model whose outputs differ by more than the tolerance, or None."""
    wrong = [one for one in comparison.differences.values() if not one.within]
    if not wrong:
        return None
    worst = max(wrong, key=lambda one: one.absolute)
    return ExportRefusal(
        f"The ONNX model gives something else than PyTorch: the output {worst.output} is up to "
        f"{worst.absolute:.2g} apart "
        f"(relative {worst.relative:.2g}; batch: {worst.batch}), and {request.absolute:g} + "
        f"{request.relative:g} × the value is "
        "tolerated.",
        "tolerance",
    )


def _number(value: float) -> float | str:
    """Returns `value`, or "infinite" for infinity and NaN, which JSON does not have."""
    return value if math.isfinite(value) else "infinite"
