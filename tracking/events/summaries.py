"""Extracts scalars, histograms, images and sounds, in TensorBoard's old and new formats, and hyperparameters
from events."""

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

from tracking.events.event_media import read_media
from tracking.events.histogram_store import HistogramPoint
from tracking.events.histograms import read_histogram
from tracking.events.media_store import StepMedia
from tracking.events.records import DamagedEvents
from tracking.metrics.points import Point

MAX_KEY_LENGTH = 250
# The same limits as MLflow's.
MAX_VALUE_LENGTH = 6000
# Larger whole numbers are not exact as floats.
_MAX_EXACT_INT = 2**53


@dataclass
class EventData:
    points: list[Point] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    histograms: list[HistogramPoint] = field(default_factory=list)
    media: list[StepMedia] = field(default_factory=list)


def parse_records(records: Iterable[bytes], prefix: str) -> EventData:
    """Returns the points, histograms, media and params of these records; `prefix` is added to every tag.
    Raises DamagedEvents."""
    data = EventData()
    for record in records:
        try:
            event = event_pb2.Event.FromString(record)
        except DecodeError as error:
            raise DamagedEvents(0) from error
        for value in event.summary.value:
            _add_value(data, event, value, prefix)
    return data


def _add_value(data: EventData, event: Any, value: Any, prefix: str) -> None:
    if value.tag == hparams.SESSION_START_INFO_TAG:
        data.params |= _params(value.metadata.plugin_data.content)
        return
    key = _key(prefix + value.tag)
    if not key:
        return
    buckets = read_histogram(value)
    if buckets is not None:
        data.histograms.append(HistogramPoint(key, event.step, buckets))
        return
    data.media += read_media(value, key, event.step)
    number = _number(value)
    if number is not None:
        data.points.append(Point(key, number, event.step, _ms(event.wall_time)))


def _number(value: Any) -> float | None:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    # Writers may name the plugin only in the first value of a tag.
    if kind != "tensor" or value.metadata.plugin_data.plugin_name not in ("", scalars.PLUGIN_NAME):
        return None
    if any(dimension.size != 1 for dimension in value.tensor.tensor_shape.dim):
        return None
    try:
        return float(tensor_util.make_ndarray(value.tensor).item())
    except (TypeError, ValueError):
        return None  # text or an invalid tensor


def _params(content: bytes) -> dict[str, str]:
    try:
        data = plugin_data_pb2.HParamsPluginData.FromString(content)
    except DecodeError:
        return {}
    params = {}
    for name, value in data.session_start_info.hparams.items():
        kind = value.WhichOneof("kind")
        key = _key(name)
        if key and kind in ("number_value", "string_value", "bool_value"):
            params[key] = _param_text(getattr(value, kind))
    return params


def _param_text(value: object) -> str:
    """Returns the value as a script would log it; event files store all numbers as floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INT:
        return str(int(value))
    return str(value).replace("\0", "")[:MAX_VALUE_LENGTH]


def _key(text: str) -> str:
    return "".join(char if char.isprintable() else "_" for char in text)[:MAX_KEY_LENGTH].strip()


def _ms(wall_time: float) -> int:
    ms = wall_time * 1000
    # A broken clock, or a writer that leaves the time out.
    return int(ms) if math.isfinite(ms) and 0 <= ms < _MAX_EXACT_INT else 0
