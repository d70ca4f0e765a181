"""Which example input is taken: what was typed, what a file holds, or what the program was exported with."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .examples import Argument, Example, random_of
from .loading import Loaded
from .reporting import Refusal
from .wanted import Wanted

FOLDER = Path("example").absolute()
EVERY = ""
LEAST_OPEN = 2
"""torch.export takes an axis of size 1 for one that is always 1."""


def example_of(wanted: Wanted, loaded: Loaded) -> Example:
    """Raises Refusal naming the field."""
    told = _told(wanted, loaded)
    names, by_name = _names([name for name, _ in told], loaded)
    values = dict(zip(names, (value for _, value in told), strict=True))
    axes = _axes(wanted, loaded, values)
    typed = dict(zip(names, wanted.inputs, strict=False))
    arguments = [Argument(name, value, axes[name], typed.get(name)) for name, value in values.items()]
    found = Example(tuple(arguments), by_name)
    _check_equal(found)
    open_enough = {name: max(size, LEAST_OPEN) for name, size in found.sizes.items()}
    return Example(tuple(replace(item, tensor=item.sized(open_enough)) for item in arguments), by_name)


def _told(wanted: Wanted, loaded: Loaded) -> list[tuple[str, Any]]:
    """(name or "", tensor) of each input."""
    if wanted.inputs:
        generator = torch.Generator().manual_seed(1)
        return [(item.name, random_of(item, generator)) for item in wanted.inputs]
    return _read(FOLDER / wanted.example) if wanted.example else _of_program(loaded)


def _read(path: Path) -> list[tuple[str, Any]]:
    try:
        values = _values(path)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(
            f"The example input {path.name} cannot be read: {error}".splitlines()[0], "example"
        ) from error
    wrong = [
        name or str(index)
        for index, (name, value) in enumerate(values)
        if not isinstance(value, torch.Tensor)
    ]
    if wrong or not values:
        raise Refusal(
            f"The example input {path.name} must hold a tensor, or a list or dict of tensors; "
            f"{wrong[0] if wrong else 'it'} is none.",
            "example",
        )
    return values


def _values(path: Path) -> list[tuple[str, Any]]:
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


def _of_program(loaded: Loaded) -> list[tuple[str, Any]]:
    if loaded.program is None or not loaded.program.example_inputs:
        raise Refusal("There is no example input: type its shape, or choose a file that holds one.", "inputs")
    arguments, named = loaded.program.example_inputs
    values = [*(("", value) for value in arguments), *named.items()]
    if any(not isinstance(value, torch.Tensor) for _, value in values):
        raise Refusal("The program takes more than plain tensors; type the shapes of its tensors.", "inputs")
    return values


def _names(told: list[str], loaded: Loaded) -> tuple[list[str], bool]:
    """Every input's name, and whether they are those of the module's parameters."""
    known = (
        list(inspect.signature(loaded.module.forward).parameters)
        if loaded.kind in ("module", "state_dict")
        else []
    )
    if all(told) and set(told) <= set(known):
        return told, True
    plain = [name for name in known if name not in ("args", "kwargs", "self")]
    names = [
        name or (plain[index] if index < len(plain) else "input" if len(told) == 1 else f"input_{index}")
        for index, name in enumerate(told)
    ]
    if len(set(names)) < len(names):
        raise Refusal("Two inputs have the same name; give each its own.", "inputs")
    return names, False


def _axes(wanted: Wanted, loaded: Loaded, values: dict[str, Any]) -> dict[str, dict[int, str]]:
    """The dynamic axes of each input; those of a program are its own, and may only be given other names."""
    unknown = [name for name in wanted.dynamic if name != EVERY and name not in values]
    if unknown:
        raise Refusal(
            f"There is no input {unknown[0]!r} to have a dynamic axis; there are: {', '.join(values)}.",
            "dynamic",
        )
    asked = {name: wanted.dynamic.get(name) or wanted.dynamic.get(EVERY) or {} for name in values}
    for name, axes in asked.items():
        for axis in axes:
            if axis >= values[name].dim():
                shape = "x".join(map(str, values[name].shape)) or "scalar"
                raise Refusal(f"The input {name} ({shape}) has no axis {axis}; count axes from 0.", "dynamic")
    if loaded.program is None:
        return asked
    own = dict(zip(values, _program_axes(loaded.program), strict=False))
    for name, axes in asked.items():
        fixed = [axis for axis in axes if axis not in own.get(name, {})]
        if fixed:
            raise Refusal(
                f"The program was exported with a fixed size of axis {fixed[0]} of {name}; give "
                "dynamic_shapes to "
                "torch.export.export and register that, or take the axis out of the dynamic ones.",
                "dynamic",
            )
    return {
        name: {axis: asked[name].get(axis, word) for axis, word in axes.items()} for name, axes in own.items()
    }


def _program_axes(program: Any) -> list[dict[int, str]]:
    """Of each input of a torch.export program, the axes that it left open, and what it calls them."""
    inputs = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    shapes = [
        getattr(inputs[name], "shape", ()) for name in program.graph_signature.user_inputs if name in inputs
    ]
    return [
        {axis: str(size) for axis, size in enumerate(shape) if not isinstance(size, int)} for shape in shapes
    ]


def _check_equal(example: Example) -> None:
    for item in example.arguments:
        for axis, name in item.dynamic.items():
            if item.tensor.shape[axis] != example.sizes[name]:
                raise Refusal(
                    f"The axes called {name!r} differ in size in the example; give them different names.",
                    "dynamic",
                )
