"""Event files as scripts write them: TensorBoard's own writers, old and new, without the frameworks around
them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.audio import metadata as audio_metadata
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

AT_S = 1_700_000_000.5
NAME = "events.out.tfevents.1700000000.gpu-1.100.0"
"""Written by the process 100, which is rank 0 in the tests of jobs."""


def event_file(*events: Any) -> bytes:
    out = io.BytesIO()
    out.close = lambda: None  # type: ignore[method-assign]
    writer = RecordWriter(out)
    for event in (event_pb2.Event(wall_time=AT_S, file_version="brain.Event:2"), *events):
        writer.write(event.SerializeToString())
    return out.getvalue()


def event(*values: Any, step: int = 0, at_s: float = AT_S) -> Any:
    return event_pb2.Event(wall_time=at_s, step=step, summary=summary_pb2.Summary(value=values))


def old(tag: str, value: float) -> Any:
    """As torch.utils.tensorboard writes a number."""
    return summary_pb2.Summary.Value(tag=tag, simple_value=value)


def new(tag: str, value: float) -> Any:
    """As TensorFlow 2 and Keras do."""
    return scalar_pb(tag, value).value[0]


def bare(tag: str, value: object) -> Any:
    """A tensor whose writer has named its plugin before, or whose numbers are many."""
    return summary_pb2.Summary.Value(tag=tag, tensor=make_tensor_proto(value))


def text(tag: str, value: str) -> Any:
    return text_pb(tag, value).value[0]


def image(tag: str, content: bytes = b"\x89PNG") -> Any:
    """As torch.utils.tensorboard writes it."""
    return summary_pb2.Summary.Value(
        tag=tag, image=summary_pb2.Summary.Image(height=1, width=1, encoded_image_string=content)
    )


def images(tag: str, *contents: bytes) -> Any:
    """As TensorFlow 2 writes images of one step."""
    return summary_pb2.Summary.Value(
        tag=tag,
        tensor=make_tensor_proto([b"1", b"1", *contents]),
        metadata=image_metadata.create_summary_metadata(
            display_name=None, description=None, converted_to_tensor=True
        ),
    )


def sound(tag: str, content: bytes = b"RIFF") -> Any:
    """As torch.utils.tensorboard writes it."""
    clip = summary_pb2.Summary.Audio(sample_rate=16000, num_channels=1, encoded_audio_string=content)
    return summary_pb2.Summary.Value(tag=tag, audio=clip)


def sounds(tag: str, *contents: bytes) -> Any:
    """As TensorFlow 2 writes sounds of one step: each with a label."""
    return summary_pb2.Summary.Value(
        tag=tag,
        tensor=make_tensor_proto([[content, b""] for content in contents]),
        metadata=audio_metadata.create_summary_metadata(
            display_name=None, description=None, encoding=audio_metadata.Encoding.Value("WAV")
        ),
    )


def histogram(tag: str) -> Any:
    return summary_pb2.Summary.Value(tag=tag, histo=summary_pb2.HistogramProto(min=0, max=1, num=2))


def histogram_of(tag: str, values: Sequence[float]) -> Any:
    """As TensorFlow 2 writes it."""
    return histogram_pb(tag, np.array(values)).value[0]


def old_histogram(tag: str, limits: Sequence[float], counts: Sequence[float], low: float, high: float) -> Any:
    """As torch.utils.tensorboard writes it."""
    proto = summary_pb2.HistogramProto(min=low, max=high, num=sum(counts), bucket_limit=limits, bucket=counts)
    return summary_pb2.Summary.Value(tag=tag, histo=proto)


def session(values: Mapping[str, float | str | bool]) -> Any:
    """The hyperparameters that SummaryWriter.add_hparams or Keras write."""
    kinds: dict[type, Callable[[Any], struct_pb2.Value]] = {
        bool: lambda value: struct_pb2.Value(bool_value=value),
        str: lambda value: struct_pb2.Value(string_value=value),
        float: lambda value: struct_pb2.Value(number_value=value),
    }
    values = {name: kinds[type(value)](value) for name, value in values.items()}
    info = plugin_data_pb2.SessionStartInfo(hparams=values)
    content = plugin_data_pb2.HParamsPluginData(session_start_info=info)
    metadata = hparams.create_summary_metadata(content)
    return summary_pb2.Summary.Value(tag=hparams.SESSION_START_INFO_TAG, metadata=metadata)


def curve(tag: str, count: int, first: int = 0, kind: Callable[[str, float], Any] = old) -> list[Any]:
    return [event(kind(tag, step / 4), step=step, at_s=AT_S + step) for step in range(first, first + count)]
