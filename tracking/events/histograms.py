"""Reads histograms from events, in TensorBoard's old and new formats, into a few equally wide buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from tensorboard.compat.proto import types_pb2
from tensorboard.plugins.histogram import metadata

from tracking.events.histogram_store import Buckets

Numbers = npt.NDArray[np.float64]
# What a chart can show; writers have up to 1,500.
BUCKETS = 48
# The range of two such values is still a number, also in a browser.
MAX_VALUE = 1e300
_DIGITS = 6
_COLUMNS = 3
_TYPES = {types_pb2.DT_DOUBLE: ("<f8", "double_val"), types_pb2.DT_FLOAT: ("<f4", "float_val")}


def read_histogram(value: Any) -> Buckets | None:
    """Returns the histogram of a summary's value; None if it holds none, or an empty or invalid one."""
    kind = value.WhichOneof("value")
    # Sums of extreme counts may overflow; what is not finite is refused below.
    with np.errstate(all="ignore"):
        if kind == "histo":
            return _of_limits(value.histo)
        if kind == "tensor" and value.metadata.plugin_data.plugin_name == metadata.PLUGIN_NAME:
            table = _table(value.tensor)
            return None if table is None else _buckets(table[:, 0], table[:, 1], table[:, 2])
    return None


def _of_limits(histogram: Any) -> Buckets | None:
    """Converts the old format: the upper limit of each bucket, of which the last may be the largest float."""
    limits = np.array(histogram.bucket_limit, dtype=np.float64)
    counts = np.array(histogram.bucket, dtype=np.float64)
    low, high = histogram.min, histogram.max
    if not limits.size or limits.size != counts.size or not np.isfinite([low, high]).all() or low > high:
        return None
    edges = np.clip(np.concatenate(([low], limits)), low, high)
    return _buckets(edges[:-1], edges[1:], counts)


def _table(tensor: Any) -> Numbers | None:
    """Returns the rows [left, right, count] of the new format. TensorBoard's own reader would fill a
    tensor of any size from one number, so the numbers must all be there."""
    shape = [dimension.size for dimension in tensor.tensor_shape.dim]
    if len(shape) != 2 or shape[1] != _COLUMNS or tensor.dtype not in _TYPES:
        return None
    element, field = _TYPES[tensor.dtype]
    content = tensor.tensor_content
    if content and len(content) % np.dtype(element).itemsize:
        return None
    numbers = np.frombuffer(content, element) if content else np.array(getattr(tensor, field))
    if numbers.size != shape[0] * _COLUMNS:
        return None
    return numbers.astype(np.float64).reshape(-1, _COLUMNS)


def _buckets(left: Numbers, right: Numbers, counts: Numbers) -> Buckets | None:
    """Distributes the counts of adjacent buckets among equally wide ones."""
    filled = np.flatnonzero(counts)
    total = float(counts.sum())
    is_finite = np.isfinite(total) and np.isfinite(left).all() and np.isfinite(right).all()
    if not filled.size or not is_finite or (counts < 0).any():
        return None
    left, right, counts = (part[filled[0] : filled[-1] + 1] for part in (left, right, counts))
    low, high = float(left[0]), float(right[-1])
    edges = np.concatenate(([low], right))
    if (np.diff(edges) < 0).any() or max(abs(low), abs(high)) > MAX_VALUE:
        return None
    if high == low:
        return Buckets(low, high, [total])
    below = np.interp(np.linspace(low, high, BUCKETS + 1), edges, np.concatenate(([0.0], counts.cumsum())))
    # Where buckets have no width, the interpolation may begin or end within their counts.
    below[0], below[-1] = 0.0, total
    return Buckets(low, high, [float(f"{count:.{_DIGITS}g}") for count in np.diff(below)])
