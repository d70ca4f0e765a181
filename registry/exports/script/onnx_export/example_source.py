"""Chooses the example input: the typed one, the one in a file, or the one with which the program was
exported."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .example_input import Argument, ExampleInput, random_tensor
from .model_loader import Loaded
from .report import ExportRefusal
from .request import ExportRequest

FOLDER = Path("example").absolute()
ALL_INPUTS = ""
# torch.export takes an axis of size 1 for one that is always 1.
MIN_DYNAMIC_SIZE = 2


def find_example(request: ExportRequest, loaded: Loaded) -> ExampleInput:
    """Returns the example input of the loaded model. Raises ExportRefusal naming the field."""
    inputs = _named_inputs(request, loaded)
    names, by_name = _names([name for name, _ in inputs], loaded)
    values = dict(zip(names, (value for _, value in inputs), strict=True))
    axes = _axes(request, loaded, values)
    typed = dict(zip(names, request.inputs, strict=False))
    arguments = [Argument(name, value, axes[name], typed.get(name)) for name, value in values.items()]
    example = ExampleInput(tuple(arguments), by_name)
    _check_equal(example)
    open_enough = {name: max(size, MIN_DYNAMIC_SIZE) for name, size in example.sizes.items()}
    return ExampleInput(tuple(replace(item, tensor=item.sized(open_enough)) for item in arguments), by_name)


def _named_inputs(request: ExportRequest, loaded: Loaded) -> list[tuple[str, object]]:
    """Returns (name or "", tensor) of each input."""
    if request.inputs:
        generator = torch.Generator().manual_seed(1)
        return [(item.name, random_tensor(item, generator)) for item in request.inputs]
    return _read(FOLDER / request.example) if request.example else _program_inputs(loaded)


def _read(path: Path) -> list[tuple[str, object]]:
    try:
        values = _values(path)
    except ExportRefusal:
        raise
    except Exception as error:
        raise ExportRefusal(
            f"The example input {path.name} cannot be read: {error}".splitlines()[0], "example"
        ) from error
    wrong = [
        name or str(index)
        for index, (name, value) in enumerate(values)
        if not isinstance(value, torch.Tensor)
    ]
    if wrong or not values:
        raise ExportRefusal(
            f"The example input {path.name} must hold a tensor, or a list or dict of tensors; "
            f"{wrong[0] if wrong else 'it'} is none.",
            "example",
        )
    return values


def _values(path: Path) -> list[tuple[str, object]]:
    if path.suffix == ".npy":
        return [("", torch.from_numpy(np.load(path, allow_pickle=False)))]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return [(name, torch.from_numpy(arrays[name])) for name in arrays.files]
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(saved, torch.Tensor):
        return [("", saved)]
    if isinstance(saved, dict):
        return [(str(name), value) for name, value in saved.items()]
    return [("", value) for value in saved]


def _program_inputs(loaded: Loaded) -> list[tuple[str, object]]:
    if loaded.program is None or not loaded.program.example_inputs:
        raise ExportRefusal(
            "There is no example input: type its shape, or choose a file that holds one.", "inputs"
        )
    arguments, named = loaded.program.example_inputs
    values = [*(("", value) for value in arguments), *named.items()]
    if any(not isinstance(value, torch.Tensor) for _, value in values):
        raise ExportRefusal(
            "The program takes more than plain tensors; type the shapes of its tensors.", "inputs"
        )
    return values


def _names(order: list[str], loaded: Loaded) -> tuple[list[str], bool]:
    """Returns a name for every input, and whether all of them are parameters of the module."""
    parameters = (
        list(inspect.signature(loaded.module.forward).parameters)
        if loaded.kind in ("module", "state_dict")
        else []
    )
    if all(order) and set(order) <= set(parameters):
        return order, True
    plain = [name for name in parameters if name not in ("args", "kwargs", "self")]
    names = [
        name or (plain[index] if index < len(plain) else "input" if len(order) == 1 else f"input_{index}")
        for index, name in enumerate(order)
    ]
    if len(set(names)) < len(names):
        raise ExportRefusal("Two inputs have the same name; give each its own.", "inputs")
    return names, False


def _axes(request: ExportRequest, loaded: Loaded, values: dict[str, Any]) -> dict[str, dict[int, str]]:
    """Returns name of the input -> dynamic axis -> name of the axis. A program's axes are fixed; only their
    names may be changed."""
    unknown = [name for name in request.dynamic if name != ALL_INPUTS and name not in values]
    if unknown:
        raise ExportRefusal(
            f"There is no input {unknown[0]!r} to have a dynamic axis; there are: {', '.join(values)}.",
            "dynamic",
        )
    dynamic = {name: request.dynamic.get(name) or request.dynamic.get(ALL_INPUTS) or {} for name in values}
    for name, axes in dynamic.items():
        for axis in axes:
            if axis >= values[name].dim():
                shape = "x".join(map(str, values[name].shape)) or "scalar"
                raise ExportRefusal(
                    f"The input {name} ({shape}) has no axis {axis}; count axes from 0.", "dynamic"
                )
    if loaded.program is None:
        return dynamic
    own = dict(zip(values, _program_axes(loaded.program), strict=False))
    for name, axes in dynamic.items():
        fixed = [axis for axis in axes if axis not in own.get(name, {})]
        if fixed:
            raise ExportRefusal(
                f"The program was exported with a fixed size of axis {fixed[0]} of {name}; give "
                "dynamic_shapes to "
                "torch.export.export and register that, or take the axis out of the dynamic ones.",
                "dynamic",
            )
    return {
        name: {axis: dynamic[name].get(axis, word) for axis, word in axes.items()}
        for name, axes in own.items()
    }


def _program_axes(program: Any) -> list[dict[int, str]]:
    """Returns, for each input of a torch.export program, its dynamic axes and their names."""
    inputs = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    shapes = [
        getattr(inputs[name], "shape", ()) for name in program.graph_signature.user_inputs if name in inputs
    ]
    return [
        {axis: str(size) for axis, size in enumerate(shape) if not isinstance(size, int)} for shape in shapes
    ]


def _check_equal(example: ExampleInput) -> None:
    for item in example.arguments:
        for axis, name in item.dynamic.items():
            if item.tensor.shape[axis] != example.sizes[name]:
                raise ExportRefusal(
                    f"The axes called {name!r} differ in size in the example; give them different names.",
                    "dynamic",
                )
