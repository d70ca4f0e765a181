"""Parses metrics in logging calls. A call may have a thousand: items of the types that MLflow's client sends
take a short path, all others are validated field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tracking.metrics.point_writer import Point
from tracking.mlflow.protocol import fields, key_rules
from tracking.mlflow.protocol.errors import MlflowError
from tracking.mlflow.protocol.fields import MAX_INT64, MIN_INT64, CallArgs

# Whole numbers below this are exact as floats.
MAX_EXACT_INT = float(2**53)


@dataclass(frozen=True)
class ModelPoint:
    """A metric point of a logged model, with the data set it was computed on, if any."""

    model_id: str
    point: Point
    dataset_name: str = ""
    dataset_digest: str = ""


def parse_metric(args: CallArgs) -> tuple[Point, dict[str, str]]:
    """Returns the point of a log-metric call, and the tag for its full key if that was shortened."""
    point = _parse_plain(args)
    return (point, {}) if point else (_parse_checked(args, ""), key_rules.full_keys([args.get("key")]))


def parse_metrics(items: Sequence[Any]) -> tuple[list[Point], dict[str, str]]:
    """Returns the points of a log-batch call, and the tags for the full keys of shortened ones."""
    points = []
    tags: dict[str, str] = {}
    for index, item in enumerate(items):
        path = f"metrics[{index}]"
        if type(item) is not dict:
            raise fields.wrong_type(path, item)
        point = _parse_plain(item)
        if point is None:
            point = _parse_checked(item, f"{path}.")
            tags |= key_rules.full_keys([item.get("key")])
        points.append(point)
    return points, tags


def model_points(items: Sequence[CallArgs], points: Sequence[Point]) -> list[ModelPoint]:
    return [
        _model_point(item, point) for item, point in zip(items, points, strict=True) if item.get("model_id")
    ]


def _model_point(item: CallArgs, point: Point) -> ModelPoint:
    name, digest = fields.text(item, "dataset_name") or "", fields.text(item, "dataset_digest") or ""
    return ModelPoint(fields.required_text(item, "model_id"), point, name, digest)


def _parse_plain(item: CallArgs) -> Point | None:
    key, value, ms, step = item.get("key"), item.get("value"), item.get("timestamp"), item.get("step", 0)
    if type(value) is int and -MAX_EXACT_INT < value < MAX_EXACT_INT:
        value = float(value)
    # `type` instead of isinstance, because bool is a subclass of int: true is not a valid number.
    if (
        type(key) is str
        and type(value) is float
        and type(ms) is int
        and type(step) is int
        and _is_plain_key(key)
    ):
        return (
            Point(key, value, step, ms) if 0 <= ms <= MAX_INT64 and MIN_INT64 <= step <= MAX_INT64 else None
        )
    return None


def _parse_checked(item: CallArgs, path: str) -> Point:
    key = key_rules.key(item, "key", f"{path}key")
    value = fields.required_number(item, "value", f"{path}value")
    ms = fields.integer(item, "timestamp", f"{path}timestamp")
    if ms is None:
        raise fields.missing(f"{path}timestamp")
    if ms < 0:
        raise fields.invalid(
            f"{path}timestamp", ms, f"metric '{key}': Timestamp must be a nonnegative long (64-bit integer) "
        )
    return Point(key, value, fields.integer(item, "step", f"{path}step") or 0, ms)


# A script logs the same few keys at every step, and the full check is slower than this table.
@lru_cache(4096)
def _is_plain_key(key: str) -> bool:
    try:
        # A key that would be shortened needs a tag with its full text as well, which only the checked path
        # creates.
        return key_rules.key({"key": key}) == key
    except MlflowError:
        return False
