"""Whether the ONNX model gives what the PyTorch model gives: run by onnxruntime on the example and on random
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

from .code import told
from .examples import Example
from .reporting import Refusal
from .told import say
from .wanted import Wanted


@dataclass
class Difference:
    """The largest of one output over all batches; `relative` to the PyTorch value, where that exceeds the
    absolute tolerance."""

    output: str
    absolute: float = 0.0
    relative: float = 0.0
    batch: str = ""
    within: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "output": self.output,
            "max_absolute": _number(self.absolute),
            "max_relative": _number(self.relative),
            "within": self.within,
            "batch": self.batch,
        }


@dataclass
class Comparison:
    """`inputs`, `outputs`: [{name, dtype, shape}], a dynamic axis as its name. `batches`: what was
    compared."""

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    differences: dict[str, Difference] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)


def reference(module: Any, example: Example) -> None:
    """See that PyTorch itself takes the example, and gives the same twice. Raises Refusal."""
    try:
        first, again = (_torch(module, example, example.tensors) for _ in range(2))
    except Exception as error:
        shown = example.shown(example.tensors)
        raise Refusal(
            f"The model does not take the example input {shown}: {told(error)}", "inputs"
        ) from error
    if not first:
        raise Refusal("The model gives no tensor for the example input.", "inputs")
    if any(
        not torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
        for one, other in zip(first, again, strict=True)
    ):
        raise Refusal(
            "The model gives other values each time it is called, even in eval mode, so nothing can be "
            "compared."
        )


def compare(module: Any, example: Example, path: Path, wanted: Wanted) -> Comparison:
    """Raises Refusal where onnxruntime cannot run the model, or differs by more than is tolerated."""
    session = _session(path)
    found = Comparison(_described(session.get_inputs()), _described(session.get_outputs()))
    other_sizes: list[str] = []
    for word, tensors in (("example", example.tensors), *example.batches()):
        try:
            expected = _torch(module, example, tensors)
        except Exception as error:
            if word == "example":
                raise
            other_sizes.append(f"with {example.shown(tensors)} PyTorch fails too: {told(error)}")
            continue
        _hold_against(found, word, expected, _onnx(session, example, tensors, word), wanted)
    if len(found.batches) < 4 and other_sizes:
        raise Refusal(f"The dynamic axes do not take other sizes: {other_sizes[0]}", "dynamic")
    for one in found.differences.values():
        say(f"Output {one.output}: at most {one.absolute:.1e} apart, relative {one.relative:.1e}.")
    return found


def _session(path: Path) -> Any:
    try:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Refusal(f"onnxruntime cannot load what was exported: {told(error)}", "opset") from error


def _described(found: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "dtype": one.type.removeprefix("tensor(").removesuffix(")"),
            "shape": list(one.shape),
        }
        for one in found
    ]


def _torch(module: Any, example: Example, tensors: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        given = example.call(module, tuple(tensor.clone() for tensor in tensors))
    return [
        torch.as_tensor(leaf) for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor | int | float)
    ]


def _onnx(session: Any, example: Example, tensors: tuple[Any, ...], word: str) -> list[Any]:
    known = {one.name for one in session.get_inputs()}
    pairs = zip(example.arguments, tensors, strict=True)
    try:
        values: list[Any] = session.run(
            None, {item.name: tensor.numpy() for item, tensor in pairs if item.name in known}
        )
    except Exception as error:
        raise Refusal(
            f"PyTorch takes {example.shown(tensors)} ({word}), the ONNX model does not: {told(error)}",
            "dynamic",
        ) from error
    return values


def _hold_against(
    found: Comparison, word: str, expected: list[Any], given: list[Any], wanted: Wanted
) -> None:
    if len(expected) != len(given):
        raise Refusal(
            f"PyTorch gives {len(expected)} outputs, the ONNX model {len(given)}; they cannot be compared."
        )
    for described, one, other in zip(found.outputs, expected, given, strict=True):
        name = described["name"]
        if tuple(one.shape) != other.shape:
            raise Refusal(
                f"The output {name} has the shape {tuple(one.shape)} in PyTorch and {other.shape} in ONNX "
                f"({word})."
            )
        difference = found.differences.setdefault(name, Difference(name))
        _widen(
            difference,
            word,
            _wide(one.float().numpy() if one.dtype == torch.bfloat16 else one.numpy()),
            _wide(other),
            wanted,
        )
    found.batches.append(word)


def _wide(values: Any) -> Any:
    return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def _widen(difference: Difference, word: str, expected: Any, given: Any, wanted: Wanted) -> None:
    """What is not a number on both sides, or the same infinity, is the same."""
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(expected - given))
    apart = np.where(np.isnan(apart), np.inf, apart)
    size = np.abs(np.nan_to_num(expected))
    counted = size > wanted.absolute
    absolute = float(apart.max(initial=0.0))
    relative = float((apart[counted] / size[counted]).max(initial=0.0))
    if absolute > difference.absolute or not difference.batch:
        difference.batch = word
    difference.absolute = max(difference.absolute, absolute)
    difference.relative = max(difference.relative, relative)
    difference.within = difference.within and bool((apart <= wanted.absolute + wanted.relative * size).all())


def apart(found: Comparison, wanted: Wanted) -> Refusal | None:
    """The refusal of a model that differs more than is tolerated."""
    wrong = [one for one in found.differences.values() if not one.within]
    if not wrong:
        return None
    worst = max(wrong, key=lambda one: one.absolute)
    return Refusal(
        f"The ONNX model gives something else than PyTorch: the output {worst.output} is up to "
        f"{worst.absolute:.2g} apart "
        f"(relative {worst.relative:.2g}; batch: {worst.batch}), and {wanted.absolute:g} + "
        f"{wanted.relative:g} × the value is "
        "tolerated.",
        "tolerance",
    )


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "infinite"
