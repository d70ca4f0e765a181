"""Reads images from events, in TensorBoard's old and new formats."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto import types_pb2
from tensorboard.plugins.image import metadata

from tracking.events.image_store import StepImage

# Of the images that a script writes together under one tag.
MAX_PER_STEP = 4
# Beginning of a file -> its suffix. Nothing else is stored: SVG, for example, may hold scripts.
_SUFFIXES = ((b"\x89PNG\r\n\x1a\n", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"))
# In front of the images of a tensor stand their width and height, as text.
_SIZES = 2


def read_images(value: Any, key: str, step: int) -> list[StepImage]:
    """Returns the first images of a summary's value; none if it holds none, or in another file format."""
    if step < 0:
        return []
    files = [(image, _suffix(image)) for image in _encoded(value)[:MAX_PER_STEP]]
    return [
        StepImage(key, number, step, suffix, image) for number, (image, suffix) in enumerate(files) if suffix
    ]


def _encoded(value: Any) -> list[bytes]:
    kind = value.WhichOneof("value")
    if kind == "image":
        return [value.image.encoded_image_string]
    is_images = kind == "tensor" and value.metadata.plugin_data.plugin_name == metadata.PLUGIN_NAME
    if is_images and value.tensor.dtype == types_pb2.DT_STRING:
        return list(value.tensor.string_val)[_SIZES:]
    return []


def _suffix(image: bytes) -> str:
    return next((suffix for mark, suffix in _SUFFIXES if image.startswith(mark)), "")
