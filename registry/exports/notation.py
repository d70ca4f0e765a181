"""Parses inputs and dynamic axes as people write them: `images: 1x1x8x8 float32`, and `images: 0=batch`. It
has no side effects."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from registry.errors import RegistryError

DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
ALSO = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "uint": "uint8",
}
MAX_INPUTS, MAX_AXES, MAX_ELEMENTS, LONGEST_NAME = 16, 8, 50_000_000, 64
NAME = r"[A-Za-z_]\w*"
NUMBER = r"-?\d+(?:\.\d+)?"
INPUT = re.compile(
    rf"(?:(?P<name>{NAME})\s*:\s*)?(?P<shape>scalar|\d+(?:\s*[x×]\s*\d+)*)(?:\s+(?P<dtype>[A-Za-z]+\d*))?"
    rf"(?:\s+(?P<low>{NUMBER})\s*\.\.\s*(?P<high>{NUMBER}))?",
    re.ASCII,
)
AXES = re.compile(rf"(?:(?P<name>{NAME})\s*:)?\s*(?P<axes>[\w=,\s]+)", re.ASCII)
AXIS = re.compile(rf"(?P<axis>\d)(?:\s*=\s*(?P<word>{NAME}))?", re.ASCII)
EVERY = ""


@dataclass(frozen=True)
class Input:
    """One input of a model. `name` may be empty. `low` and `high` are the bounds of random values, or
    None."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float | None = None
    high: float | None = None


def read_inputs(lines: Iterable[str]) -> tuple[Input, ...]:
    """Parses one input per line. Raises RegistryError naming `inputs`, with the line that cannot be
    parsed."""
    inputs = tuple(_input(line) for line in map(str.strip, lines) if line)
    if len(inputs) > MAX_INPUTS:
        raise RegistryError("inputs", f"has {len(inputs)} inputs, and at most {MAX_INPUTS} are taken")
    names = [item.name for item in inputs if item.name]
    if len(set(names)) < len(names):
        raise RegistryError("inputs", "gives two inputs the same name; each needs its own")
    return inputs


def read_dynamic(lines: Iterable[str]) -> dict[str, dict[int, str]]:
    """Returns the name of an input ("" for every input) -> axis -> name of the axis. Raises RegistryError
    naming `dynamic`."""
    axes: dict[str, dict[int, str]] = {}
    for line in map(str.strip, lines):
        if not line:
            continue
        parts = AXES.fullmatch(line)
        if parts is None:
            raise _wrong_axes(line)
        name = parts["name"] or EVERY
        if name in axes:
            raise RegistryError(
                "dynamic",
                f"has two lines for {name or 'every input'}; write its axes on one: 0=batch, 2=height",
            )
        axes[name] = dict(_axis(item.strip(), line) for item in parts["axes"].split(","))
    return axes


def check_axes(dynamic: dict[str, dict[int, str]], inputs: Sequence[Input]) -> None:
    """Checks the dynamic axes against the declared inputs, as far as possible without the model. Raises
    RegistryError naming `dynamic`."""
    if not inputs:
        return
    names = [item.name for item in inputs]
    for name in dynamic:
        # An input without a name gets one when the model is loaded; until then any name may be right.
        if name != EVERY and all(names) and name not in names:
            raise RegistryError("dynamic", f"there is no input {name!r}; there are: {', '.join(names)}")
    sizes: dict[str, int] = {}
    for item in inputs:
        for axis, word in (dynamic.get(item.name) or dynamic.get(EVERY) or {}).items():
            if axis >= len(item.shape):
                shape = "x".join(map(str, item.shape)) or "scalar"
                raise RegistryError(
                    "dynamic", f"the input {item.name or shape} has no axis {axis}; count axes from 0"
                )
            if sizes.setdefault(word, item.shape[axis]) != item.shape[axis]:
                raise RegistryError(
                    "dynamic",
                    f"axes called {word!r} have the sizes {sizes[word]} and {item.shape[axis]}; give them "
                    "different "
                    "names, or the inputs the same size there",
                )


def _input(line: str) -> Input:
    parts = INPUT.fullmatch(line)
    if parts is None:
        raise RegistryError(
            "inputs",
            f"{line[:60]!r} cannot be read; write SHAPE TYPE, as 1x64 float32, or NAME: 1x64 float32",
        )
    dtype = (parts["dtype"] or "float32").lower()
    dtype = ALSO.get(dtype, dtype)
    if dtype not in DTYPES:
        raise RegistryError(
            "inputs", f"{parts['dtype']!r} is not a type that is known here; use {', '.join(DTYPES)}"
        )
    shape = (
        ()
        if parts["shape"] == "scalar"
        else tuple(int(size) for size in re.split(r"\s*[x×]\s*", parts["shape"]))
    )
    if len(shape) > MAX_AXES or 0 in shape or math.prod(shape) > MAX_ELEMENTS:
        raise RegistryError(
            "inputs",
            f"{parts['shape'][:60]} has an axis of size 0, over {MAX_AXES} axes, or too many values",
        )
    if parts["name"] and len(parts["name"]) > LONGEST_NAME:
        raise RegistryError(
            "inputs", f"{parts['name'][:60]}… is too long a name; use up to {LONGEST_NAME} characters"
        )
    return Input(parts["name"] or "", shape, dtype, *_bounds(parts["low"], parts["high"], dtype))


def _bounds(low: str | None, high: str | None, dtype: str) -> tuple[float | None, float | None]:
    if low is None or high is None:
        return None, None
    if float(low) > float(high):
        raise RegistryError("inputs", f"the bounds {low}..{high} are the wrong way round")
    least, most = _least_and_most(dtype)
    if float(low) < least or float(high) > most:
        raise RegistryError("inputs", f"the bounds {low}..{high} do not fit the type {dtype}")
    return float(low), float(high)


def _least_and_most(dtype: str) -> tuple[float, float]:
    if dtype == "uint8":
        return 0, 255
    if dtype.startswith("int"):
        half = 2 ** (int(dtype[3:]) - 1)
        return -half, half - 1
    return -math.inf, math.inf


def _axis(text: str, line: str) -> tuple[int, str]:
    parts = AXIS.fullmatch(text)
    if parts is None or len(parts["word"] or "") > LONGEST_NAME:
        raise _wrong_axes(line)
    axis = int(parts["axis"])
    return axis, parts["word"] or ("batch" if axis == 0 else f"axis_{axis}")


def _wrong_axes(line: str) -> RegistryError:
    return RegistryError(
        "dynamic", f"{line[:60]!r} cannot be read; write AXIS=NAME, as 0=batch, or images: 0=batch, 2=height"
    )
