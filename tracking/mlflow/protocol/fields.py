"""Reading what a call asks, field by field; what is wrong is told as MLflow tells it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tracking.mlflow.protocol.errors import INVALID, MlflowError

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
_API_DOCS_HINT = "See the API docs for more information about request parameters."
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
CallArgs = Mapping[str, Any]


def invalid(path: str, value: object, reason: str = "") -> MlflowError:
    spelled = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    spelled = spelled if len(spelled) <= 200 else f"{spelled[:200]}…"
    return MlflowError(
        INVALID, f"Invalid value {spelled} for parameter '{path}' supplied{': ' + reason if reason else '.'}"
    )


def missing(path: str) -> MlflowError:
    return MlflowError(INVALID, f"Missing value for required parameter '{path}'. {_API_DOCS_HINT}")


def text(args: CallArgs, name: str, path: str = "") -> str | None:
    """None where it is not given."""
    value = args.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type(path or name, value)
    if "\x00" in value:
        raise invalid(path or name, value, "Text must not contain the character NUL.")
    return value


def required_text(args: CallArgs, name: str, path: str = "") -> str:
    """Text that must be there and not be empty."""
    value = text(args, name, path)
    if not value:
        raise missing(path or name)
    return value


def run_id(args: CallArgs) -> str:
    """`run_id`, which older clients call `run_uuid`."""
    return (
        required_text(args, "run_id")
        if args.get("run_id") is not None or "run_uuid" not in args
        else required_text(args, "run_uuid")
    )


def integer(args: CallArgs, name: str, path: str = "") -> int | None:
    """A 64-bit whole number, which may come as text; None where it is not given."""
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
    """A number that must be there; what JSON cannot spell comes as "NaN", "Infinity" or "-Infinity"."""
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
    try:
        return float(value)
    except OverflowError as error:
        raise _not_a_number(path, value) from error


def items(args: CallArgs, name: str, path: str = "") -> list[Any]:
    """A list, or one alone as a query spells it; empty where it is not given."""
    value = args.get(name)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value]
    raise wrong_type(path or name, value)


def objects(args: CallArgs, name: str) -> list[tuple[str, dict[str, Any]]]:
    """A list of JSON objects, each with its path for messages: `metrics[3]`."""
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
    """One of these words, or its number, counted from `first`; empty where it is not given."""
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
    """How many are wanted at once."""
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
        # A whole number beyond 64 bits has been read as the float nearest to it, which may be within.
        if not abs(value) < -MIN_INT64:
            return MAX_INT64 + 1
        return int(value) if value == int(value) else None
    if isinstance(value, str) and len(value) <= 40:
        try:
            return int(value)
        except ValueError:
            return None
    return None
