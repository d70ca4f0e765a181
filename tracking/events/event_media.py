"""Reads images and sounds from events, in TensorBoard's old and new formats."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto import types_pb2
from tensorboard.plugins.audio import metadata as sounds
from tensorboard.plugins.image import metadata as images

from tracking.events.media_store import WAV, StepMedia

Suffixes = tuple[tuple[bytes, str], ...]
# Of the images or sounds that a script writes together under one tag.
MAX_PER_STEP = 4
# Beginning of a file -> its suffix. Nothing else is stored: SVG, for example, may hold scripts.
_IMAGE_SUFFIXES = ((b"\x89PNG\r\n\x1a\n", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"))
_SOUND_SUFFIXES = ((b"RIFF", WAV),)
# In front of the images of a tensor stand their width and height, as text. Behind each sound stands its
# label.
_SIZES, _WITH_LABEL = 2, 2


def read_media(value: Any, key: str, step: int) -> list[StepMedia]:
    """Returns the first images or sounds of a summary's value; none if it holds none, or in another file
    format."""
    if step < 0:
        return []
    encoded, suffixes = _encoded(value)
    files = [(content, _suffix(content, suffixes)) for content in encoded[:MAX_PER_STEP]]
    return [
        StepMedia(key, number, step, suffix, content)
        for number, (content, suffix) in enumerate(files)
        if suffix
    ]


def _encoded(value: Any) -> tuple[list[bytes], Suffixes]:
    """Returns the files in a value, and what they may be."""
    kind = value.WhichOneof("value")
    if kind == "image":
        return [value.image.encoded_image_string], _IMAGE_SUFFIXES
    if kind == "audio":
        return [value.audio.encoded_audio_string], _SOUND_SUFFIXES
    if kind == "tensor" and value.tensor.dtype == types_pb2.DT_STRING:
        texts = list(value.tensor.string_val)
        plugin = value.metadata.plugin_data.plugin_name
        if plugin == images.PLUGIN_NAME:
            return texts[_SIZES:], _IMAGE_SUFFIXES
        if plugin == sounds.PLUGIN_NAME:
            return texts[::_WITH_LABEL], _SOUND_SUFFIXES
    return [], ()


def _suffix(content: bytes, suffixes: Suffixes) -> str:
    return next((suffix for mark, suffix in suffixes if content.startswith(mark)), "")
