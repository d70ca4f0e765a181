"""Typed access to the arguments of a call. Every function raises MlflowError, in MLflow's words, for a value
of the wrong type or range."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, cast

from tracking.mlflow.protocol.errors import INVALID, MlflowError

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
_API_DOCS_HINT = "See the API docs for more information about request parameters."
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
CallArgs = dict[str, Any]
JsonObject = dict[str, Any]


def invalid(path: str, value: object, reason: str = "") -> MlflowError:
    spelled = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    spelled = spelled if len(spelled) <= 200 else f"{spelled[:200]}…"
    return MlflowError(
        INVALID, f"Invalid value {spelled} for parameter '{path}' supplied{': ' + reason if reason else '.'}"
    )


def missing(path: str) -> MlflowError:
    return MlflowError(INVALID, f"Missing value for required parameter '{path}'. {_API_DOCS_HINT}")


def text(args: CallArgs, name: str, path: str = "") -> str | None:
    """Returns the text of the field `name`, or None where it is missing. `path` names the field in errors."""
    value = args.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type(path or name, value)
    if "\x00" in value:
        raise invalid(path or name, value, "Text must not contain the character NUL.")
    return value


def required_text(args: CallArgs, name: str, path: str = "") -> str:
    """Returns the text of a field that must be present and not empty."""
    value = text(args, name, path)
    if not value:
        raise missing(path or name)
    return value


def run_id(args: CallArgs) -> str:
    """Returns the argument `run_id`, which older clients call `run_uuid`."""
    # If both are missing, the error names `run_id`.
    return (
        required_text(args, "run_id")
        if args.get("run_id") is not None or "run_uuid" not in args
        else required_text(args, "run_uuid")
    )


def integer(args: CallArgs, name: str, path: str = "") -> int | None:
    """Returns a signed 64-bit integer, which may be spelled as text; None where it is missing."""
    value = args.get(name)
    if value is None:
        return None
    number = _parse_integer(value)
    if number is None:
        raise wrong_type(path or name, value)
    if not MIN_INT64 <= number <= MAX_INT64:
        raise invalid(path or name, value, "It must fit in 64 bits.")
    return number


def required_number(args: CallArgs, name: str, path: str = "") -> float:
    """Returns a float that must be present; clients spell non-finite ones "NaN", "Infinity" and
    "-Infinity"."""
    value = args.get(name)
    path = path or name
    if value is None:
        raise missing(path)
    if isinstance(value, str):
        if value in _NON_FINITE:
            return _NON_FINITE[value]
        try:
            return float(value)
        except ValueError as error:
            raise _not_a_number(path, value) from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _not_a_number(path, value)
    # JSON has no integer beyond 64 bits here: its parser reads a larger one as a float.
    return float(value)


def items(args: CallArgs, name: str, path: str = "") -> list[Any]:
    """Returns a list field; a single text, as a query string has it, becomes a list of one."""
    value = args.get(name)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value]
    raise wrong_type(path or name, value)


def objects(args: CallArgs, name: str) -> list[tuple[str, dict[str, object]]]:
    """Returns a list of JSON objects as (path, object); the path, such as `metrics[3]`, is for messages."""
    pairs = []
    for index, item in enumerate(items(args, name)):
        path = f"{name}[{index}]"
        if not isinstance(item, dict):
            raise wrong_type(path, item)
        pairs.append((path, cast("dict[str, Any]", item)))
    return pairs


def texts(args: CallArgs, name: str) -> list[str]:
    values = items(args, name)
    for item in values:
        if not isinstance(item, str) or "\x00" in item:
            raise wrong_type(name, item)
    return values


def choice(args: CallArgs, name: str, options: Sequence[str], *, first: int = 1) -> str:
    """Returns one of `options`, given by name or by its number counted from `first`; "" where it is
    missing."""
    value = args.get(name)
    if value is None or value == "":
        return ""
    number = _parse_integer(value)
    if number is not None and first <= number < first + len(options):
        return options[number - first]
    if value not in options:
        raise invalid(name, value, f"It must be one of {', '.join(options)}.")
    return str(value)


def max_results(args: CallArgs, default: int, limit: int, name: str = "max_results") -> int:
    """Returns the requested page size, from 1 to `limit`; `default` where it is missing."""
    count = integer(args, name)
    if count is None:
        return default
    if not 1 <= count <= limit:
        raise invalid(name, count, f"It must be a positive integer of at most {limit}.")
    return count


def wrong_type(path: str, value: object) -> MlflowError:
    return invalid(path, value, f" Hint: Value was of type '{type(value).__name__}'. {_API_DOCS_HINT}")


def _not_a_number(path: str, value: object) -> MlflowError:
    return invalid(path, value, "Please specify value as a valid double (64-bit floating point)")


def _parse_integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        # JSON parsers read an integer beyond 64 bits as the nearest float, which may lie within the range.
        if not abs(value) < -MIN_INT64:
            return MAX_INT64 + 1
        return int(value) if value == int(value) else None
    # 64 bits need at most 20 characters; the limit bounds the time of int() for long texts.
    if isinstance(value, str) and len(value) <= 40:
        try:
            return int(value)
        except ValueError:
            return None
    return None
