"""Reading what a call asks, field by field; what is wrong is told as MLflow tells it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tracking.mlflow.protocol.errors import INVALID, MlflowError

LEAST, MOST = -(2**63), 2**63 - 1
_SEE = "See the API docs for more information about request parameters."
_REALS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
Asked = Mapping[str, Any]


def invalid(path: str, value: object, why: str = "") -> MlflowError:
    shown = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    return MlflowError(
        INVALID, f"Invalid value {shown} for parameter '{path}' supplied{': ' + why if why else '.'}"
    )


def missing(path: str) -> MlflowError:
    return MlflowError(INVALID, f"Missing value for required parameter '{path}'. {_SEE}")


def text(asked: Asked, name: str, path: str = "") -> str | None:
    """None where it is not given."""
    value = asked.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type(path or name, value)
    if "\x00" in value:
        raise invalid(path or name, value, "Text must not contain the character NUL.")
    return value


def words(asked: Asked, name: str, path: str = "") -> str:
    """Text that must be there and not be empty."""
    value = text(asked, name, path)
    if not value:
        raise missing(path or name)
    return value


def run_id(asked: Asked) -> str:
    """`run_id`, which older clients call `run_uuid`."""
    return (
        words(asked, "run_id")
        if asked.get("run_id") is not None or "run_uuid" not in asked
        else words(asked, "run_uuid")
    )


def whole(asked: Asked, name: str, path: str = "") -> int | None:
    """A 64-bit whole number, which may come as text; None where it is not given."""
    value = asked.get(name)
    if value is None:
        return None
    found = _whole(value)
    if found is None:
        raise wrong_type(path or name, value)
    if not LEAST <= found <= MOST:
        raise invalid(path or name, value, "It must fit in 64 bits.")
    return found


def real(asked: Asked, name: str, path: str = "") -> float:
    """A number that must be there; what JSON cannot spell comes as "NaN", "Infinity" or "-Infinity"."""
    value = asked.get(name)
    path = path or name
    if value is None:
        raise missing(path)
    if isinstance(value, str):
        if value in _REALS:
            return _REALS[value]
        try:
            return float(value)
        except ValueError as error:
            raise _no_real(path, value) from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _no_real(path, value)
    try:
        return float(value)
    except OverflowError as error:
        raise _no_real(path, value) from error


def several(asked: Asked, name: str, path: str = "") -> list[Any]:
    """A list, or one alone as a query spells it; empty where it is not given."""
    value = asked.get(name)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value]
    raise wrong_type(path or name, value)


def objects(asked: Asked, name: str) -> list[tuple[str, dict[str, Any]]]:
    """A list of JSON objects, each with its path for messages: `metrics[3]`."""
    found = []
    for index, item in enumerate(several(asked, name)):
        path = f"{name}[{index}]"
        if not isinstance(item, dict):
            raise wrong_type(path, item)
        found.append((path, cast("dict[str, Any]", item)))
    return found


def texts(asked: Asked, name: str) -> list[str]:
    found = several(asked, name)
    for item in found:
        if not isinstance(item, str) or "\x00" in item:
            raise wrong_type(name, item)
    return found


def choice(asked: Asked, name: str, options: Sequence[str], *, first: int = 1) -> str:
    """One of these words, or its number, counted from `first`; empty where it is not given."""
    value = asked.get(name)
    if value is None or value == "":
        return ""
    number = _whole(value)
    if number is not None and first <= number < first + len(options):
        return options[number - first]
    if value not in options:
        raise invalid(name, value, f"It must be one of {', '.join(options)}.")
    return str(value)


def most(asked: Asked, default: int, limit: int, name: str = "max_results") -> int:
    """How many are wanted at once."""
    found = whole(asked, name)
    if found is None:
        return default
    if not 1 <= found <= limit:
        raise invalid(name, found, f"It must be a positive integer of at most {limit}.")
    return found


def wrong_type(path: str, value: object) -> MlflowError:
    return invalid(path, value, f" Hint: Value was of type '{type(value).__name__}'. {_SEE}")


def _no_real(path: str, value: object) -> MlflowError:
    return invalid(path, value, "Please specify value as a valid double (64-bit floating point)")


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        # A whole number beyond 64 bits has been read as the float nearest to it, which may be within.
        if not abs(value) < -LEAST:
            return MOST + 1
        return int(value) if value == int(value) else None
    if isinstance(value, str) and len(value) <= 40:
        try:
            return int(value)
        except ValueError:
            return None
    return None
