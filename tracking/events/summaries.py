"""What an event says: numbers, in the old and the new way to write them, and hyperparameters. Everything else
is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.scalar import metadata as scalars
from tensorboard.util import tensor_util

from tracking.events.records import Damaged
from tracking.metrics.points import Point

LONGEST_KEY = 250
LONGEST_VALUE = 6000
"""As MLflow's."""
_EXACT = 2**53


@dataclass
class Told:
    points: list[Point] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)


def told(records: Iterable[bytes], prefix: str) -> Told:
    """What these records say; `prefix` stands before every tag. Raises Damaged."""
    found = Told()
    for record in records:
        try:
            event = event_pb2.Event.FromString(record)
        except DecodeError as error:
            raise Damaged(0) from error
        for value in event.summary.value:
            _take(found, event, value, prefix)
    return found


def _take(found: Told, event: Any, value: Any, prefix: str) -> None:
    if value.tag == hparams.SESSION_START_INFO_TAG:
        found.params |= _params(value.metadata.plugin_data.content)
        return
    number = _number(value)
    key = _key(prefix + value.tag)
    if number is not None and key:
        found.points.append(Point(key, number, event.step, _ms(event.wall_time)))


def _number(value: Any) -> float | None:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    # A writer may name the plugin with the first number of a tag only.
    if kind != "tensor" or value.metadata.plugin_data.plugin_name not in ("", scalars.PLUGIN_NAME):
        return None
    if any(dimension.size != 1 for dimension in value.tensor.tensor_shape.dim):
        return None
    try:
        return float(tensor_util.make_ndarray(value.tensor).item())
    except (TypeError, ValueError):
        return None  # text, or no tensor at all


def _params(content: bytes) -> dict[str, str]:
    try:
        data = plugin_data_pb2.HParamsPluginData.FromString(content)
    except DecodeError:
        return {}
    found = {}
    for name, value in data.session_start_info.hparams.items():
        kind = value.WhichOneof("kind")
        key = _key(name)
        if key and kind in ("number_value", "string_value", "bool_value"):
            found[key] = _spelled(getattr(value, kind))
    return found


def _spelled(value: object) -> str:
    """As a script would say it: numbers are all kept as floats there."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return str(value).replace("\0", "")[:LONGEST_VALUE]


def _key(text: str) -> str:
    return "".join(char if char.isprintable() else "_" for char in text)[:LONGEST_KEY].strip()


def _ms(wall_time: float) -> int:
    ms = wall_time * 1000
    return int(ms) if math.isfinite(ms) and 0 <= ms < _EXACT else 0
