"""Metrics as a call brings them. Thousands come at once: what is as clients send it is taken without ado, all
else looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tracking.metrics.point_writer import Point
from tracking.mlflow.protocol import fields, key_rules
from tracking.mlflow.protocol.errors import MlflowError
from tracking.mlflow.protocol.fields import LEAST, MOST, Asked

BIG = float(2**53)


@dataclass(frozen=True)
class ModelPoint:
    """What a point says about a logged model, on a data set where one is named."""

    model_id: str
    point: Point
    dataset_name: str = ""
    dataset_digest: str = ""


def one(asked: Asked) -> tuple[Point, dict[str, str]]:
    """Return the metric of log-metric, and the tags that tell its whole name where that is too long."""
    point = _plain(asked)
    return (point, {}) if point else (_checked(asked, ""), key_rules.full_keys([asked.get("key")]))


def of_batch(items: Sequence[Any]) -> tuple[list[Point], dict[str, str]]:
    """Return the metrics of log-batch, and the tags that tell their whole names where these are too long."""
    found = []
    told: dict[str, str] = {}
    for index, item in enumerate(items):
        path = f"metrics[{index}]"
        if type(item) is not dict:
            raise fields.wrong_type(path, item)
        point = _plain(item)
        if point is None:
            point = _checked(item, f"{path}.")
            told |= key_rules.full_keys([item.get("key")])
        found.append(point)
    return found, told


def of_models(items: Sequence[Asked], points: Sequence[Point]) -> list[ModelPoint]:
    return [_of_model(item, point) for item, point in zip(items, points, strict=True) if item.get("model_id")]


def _of_model(item: Asked, point: Point) -> ModelPoint:
    name, digest = fields.text(item, "dataset_name") or "", fields.text(item, "dataset_digest") or ""
    return ModelPoint(fields.words(item, "model_id"), point, name, digest)


def _plain(item: Asked) -> Point | None:
    key, value, ms, step = item.get("key"), item.get("value"), item.get("timestamp"), item.get("step", 0)
    if type(value) is int and -BIG < value < BIG:
        value = float(value)
    if type(key) is str and type(value) is float and type(ms) is int and type(step) is int and _is_good(key):
        return Point(key, value, step, ms) if 0 <= ms <= MOST and LEAST <= step <= MOST else None
    return None


def _checked(item: Asked, path: str) -> Point:
    key = key_rules.key(item, "key", f"{path}key")
    value = fields.real(item, "value", f"{path}value")
    ms = fields.whole(item, "timestamp", f"{path}timestamp")
    if ms is None:
        raise fields.missing(f"{path}timestamp")
    if ms < 0:
        raise fields.invalid(
            f"{path}timestamp", ms, f"metric '{key}': Timestamp must be a nonnegative long (64-bit integer) "
        )
    return Point(key, value, fields.whole(item, "step", f"{path}step") or 0, ms)


@lru_cache(4096)
def _is_good(key: str) -> bool:
    try:
        return key_rules.key({"key": key}) == key
    except MlflowError:
        return False
