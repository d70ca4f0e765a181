"""Samples on their way to whoever looks: as JSON, once for all sockets."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson

from clusters.models import Node
from live.fanout import is_watched, tell_here
from live.topics import telemetry_topic
from trainhub_launch.telemetry import Block
from workspaces import process_caches

GRACE_S = 5.0
"""A page that is loaded anew leaves and comes back."""
MOST_STEPS = 120
"""Shown of one block; a node tells at most the last minute."""
DIGITS = 2

_lock = threading.Lock()
_watched_at: dict[int, float] = {}


def wants_samples(node_id: int) -> bool:
    """Whether the node is to tell every second."""
    is_watched_now = is_watched(telemetry_topic(node_id))
    with _lock:
        now = time.monotonic()
        if is_watched_now:
            _watched_at[node_id] = now
            return True
        if now - _watched_at.get(node_id, -math.inf) < GRACE_S:
            return True
        _watched_at.pop(node_id, None)
        return False


def publish_samples(node: Node, blocks: Iterable[Block]) -> None:
    """To the sockets of this process, which the node was told of."""
    topic = telemetry_topic(node.pk)
    if is_watched(topic):
        for text in messages(node, blocks):
            tell_here(topic, text)


def messages(node: Node, blocks: Iterable[Block]) -> Iterator[str]:
    """`live.messages.TelemetrySampled`, one for each span of time, by the hub's clock; where GPUs differ in
    their metrics (MIG devices), one for each kind of them."""
    open_: dict[tuple[int, int, int], dict[str, Any]] = {}
    for block in blocks:
        first = max(0, block.steps - MOST_STEPS)
        span = (block.start, block.steps, block.step_s)
        said = open_.get(span)
        part = "host" if block.is_host else "gpus"
        if said is None or part in said:
            if said is not None:
                yield _text(said)
            start = round(block.start + first * block.step_s + node.clock_offset_s)
            said = open_[span] = {
                "type": "telemetry.sampled",
                "node": node.name,
                "start": start,
                "step_s": block.step_s,
            }
        said[part] = _numbers(block, first)
    for said in open_.values():
        yield _text(said)


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _watched_at.clear()


def _numbers(block: Block, first: int) -> dict[str, Any]:
    # float32 all the way: orjson writes its shortest form, and null for NaN.
    numbers = np.round(
        np.frombuffer(block.values, "<f4").reshape(-1, len(block.subjects), len(block.metrics))[first:],
        DIGITS,
    )
    if block.is_host:
        return {"metrics": block.metrics, "values": np.ascontiguousarray(numbers[:, 0])}
    return {"subjects": block.subjects, "metrics": block.metrics, "values": numbers}


def _text(said: dict[str, Any]) -> str:
    return orjson.dumps(said, option=orjson.OPT_SERIALIZE_NUMPY).decode()
