"""Converts the model: by torch.export and torch.onnx, and TorchScript by the older exporter, which still
accepts it."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch

from .code import code_location, error_text
from .example_input import ExampleInput
from .model_loader import Loaded
from .report import ExportRefusal
from .run_log import write_line

# PyTorch reports these facts only in the text of its errors.
SPECIALIZED = re.compile(
    r"You marked (\S+) as dynamic but your code specialized it to be a constant \((\d+)\)"
)
OPERATOR = re.compile(r"op='([^']+)'|operator '([^']+)'")
DATA_DEPENDENT = "GuardOnDataDependentSymNode"


@dataclass(frozen=True)
class Converted:
    """The written ONNX model. `files`: file name -> size in bytes."""

    exporter: str
    opset: int
    files: dict[str, int]


def convert(loaded: Loaded, example: ExampleInput, opset: int | None, target: Path) -> Converted:
    """Writes the ONNX model to `target`, and its weights beside it if they are too large for one file. Raises
    ExportRefusal."""
    target.parent.mkdir(parents=True, exist_ok=True)
    exporter = "torch.jit" if loaded.kind == "torchscript" else "torch.export"
    write_line(f"Exporting by {exporter}.")
    with _quietly():
        if loaded.kind == "torchscript":
            _from_script(loaded.module, example, opset, target)
        else:
            program = loaded.program or _program(loaded.module, example)
            _from_program(program, example, opset, target)
    try:
        # By its path: with its weights in a second file a model may be larger than what can be checked in
        # memory.
        onnx.checker.check_model(str(target), full_check=True)
    except Exception as error:
        raise ExportRefusal(f"What the exporter wrote is no valid ONNX model: {error_text(error)}") from error
    imports = {
        item.domain: item.version for item in onnx.load(str(target), load_external_data=False).opset_import
    }
    files = {path.name: path.stat().st_size for path in sorted(target.parent.iterdir())}
    return Converted(exporter, imports.get("", 0), files)


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppresses the output of PyTorch's exporters, which print graphs and advice over pages; their errors
    contain what matters."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def _program(module: object, example: ExampleInput) -> object:
    dims = {name: torch.export.Dim(name) for name in example.sizes}
    shapes = [{axis: dims[name] for axis, name in item.dynamic.items()} for item in example.arguments]
    try:
        if not example.by_name:
            return torch.export.export(module, example.tensors, dynamic_shapes=tuple(shapes))
        named = {item.name: item.tensor for item in example.arguments}
        dynamic = {item.name: shape for item, shape in zip(example.arguments, shapes, strict=True)}
        return torch.export.export(module, (), named, dynamic_shapes=dynamic)
    except Exception as error:
        raise _refuse_program(error) from error


def _from_program(program: object, example: ExampleInput, opset: int | None, target: Path) -> None:
    names = [item.name for item in example.arguments]
    axes = [dict(item.dynamic) for item in example.arguments]
    dynamic: object = dict(zip(names, axes, strict=True)) if example.by_name else tuple(axes)
    try:
        exported = torch.onnx.export(
            program,
            (),
            input_names=None if example.by_name else names,
            opset_version=opset,
            dynamic_shapes=dynamic if any(axes) else None,
            verbose=False,
        )
        exported.save(str(target))
    except Exception as error:
        raise _refuse_operator(error, opset) from error


def _from_script(module: object, example: ExampleInput, opset: int | None, target: Path) -> None:
    try:
        torch.onnx.export(
            module,
            example.tensors,
            str(target),
            dynamo=False,
            opset_version=opset,
            input_names=[item.name for item in example.arguments],
            dynamic_axes={item.name: dict(item.dynamic) for item in example.arguments if item.dynamic}
            or None,
        )
    except Exception as error:
        raise _refuse_operator(error, opset) from error


def _refuse_program(error: Exception) -> ExportRefusal:
    kinds = {type(one).__name__ for one in _chain(error)}
    if DATA_DEPENDENT in kinds:
        where = next(
            (code_line for one in _chain(error) if (code_line := code_location(one.__traceback__))), ""
        )
        return ExportRefusal(
            f"What the model does depends on the values of its input{f' ({where})' if where else ''}, and "
            "an ONNX graph is "
            "the same for every input. Write it with torch.where or torch.cond, or register what "
            "torch.jit.script makes of it, "
            "which keeps its branches and loops."
        )
    fixed = SPECIALIZED.search(str(error))
    if fixed:
        return ExportRefusal(
            f"The axis {fixed[1]!r} cannot be dynamic: the model only works with the size {fixed[2]}. Take "
            "it out of the dynamic "
            "axes, or write the model for any size.",
            "dynamic",
        )
    if "Constraints violated" in str(error):
        sentences = [
            line.strip(" -")
            for line in str(error).splitlines()[1:6]
            if line.strip() and "above occurred" not in line
        ]
        return ExportRefusal(
            f"The dynamic axes are more than the model allows: {' '.join(sentences)[:400]}", "dynamic"
        )
    return ExportRefusal(f"torch.export cannot follow the model: {error_text(error)}")


def _refuse_operator(error: Exception, opset: int | None) -> ExportRefusal:
    for one in _chain(error):
        match = OPERATOR.search(str(one))
        if match and ("No ONNX function" in str(one) or type(one).__name__ == "UnsupportedOperatorError"):
            at = f" of opset {opset}" if opset else ""
            return ExportRefusal(
                f"The model uses the operator {match[1] or match[2]}, which has no counterpart in ONNX{at}; "
                "compute it with "
                "other operators, or do that step outside the model.",
                "opset" if opset else "",
            )
    return ExportRefusal(
        f"torch.onnx cannot translate the model: {error_text(list(_chain(error))[-1])}",
        "opset" if opset else "",
    )


def _chain(error: BaseException) -> list[BaseException]:
    """Returns the error and those that caused it."""
    errors: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in errors:
        errors.append(one)
        one = one.__cause__ or one.__context__
    return errors
