"""Publishes samples to the sockets that watch a node: encoded as JSON once for all of them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import orjson

from clusters.models import Node
from live.elsewhere import is_watched_anywhere, tell_everywhere
from live.topics import telemetry_topic
from trainhub_launch.telemetry import Block
from workspaces import process_caches

# A node counts as watched for this time after its last socket closed: a reloaded page reconnects.
GRACE_S = 5.0
# Steps of one block that are published.
MAX_STEPS = 120
DIGITS = 2

_lock = threading.Lock()
_watched_at: dict[int, float] = {}


def wants_samples(node_id: int) -> bool:
    """Returns whether the node should report samples every second."""
    is_watched_now = is_watched_anywhere(telemetry_topic(node_id))
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
    """Sends the samples to the sockets that watch the node."""
    topic = telemetry_topic(node.pk)
    if is_watched_anywhere(topic):
        for text in messages(node, blocks):
            tell_everywhere(topic, text)


def messages(node: Node, blocks: Iterable[Block]) -> Iterator[str]:
    """Yields `live.messages.TelemetrySampled` messages by the hub's clock: one per time span, or several
    where GPUs differ in their metrics, as MIG devices do."""
    open_messages: dict[tuple[int, int, int], dict[str, object]] = {}
    for block in blocks:
        first = max(0, block.steps - MAX_STEPS)
        span = (block.start, block.steps, block.step_s)
        message = open_messages.get(span)
        part = "host" if block.is_host else "gpus"
        # The page merges messages of one span by part; a second part of the same kind needs its own message.
        if message is None or part in message:
            if message is not None:
                yield _text(message)
            start = round(block.start + first * block.step_s + node.clock_offset_s)
            message = open_messages[span] = {
                "type": "telemetry.sampled",
                "node": node.name,
                "start": start,
                "step_s": block.step_s,
            }
        message[part] = _numbers(block, first)
    for message in open_messages.values():
        yield _text(message)


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _watched_at.clear()


def _numbers(block: Block, first: int) -> dict[str, object]:
    # The values stay float32: orjson writes their shortest form, and null for NaN.
    numbers = np.round(
        np.frombuffer(block.values, "<f4").reshape(-1, len(block.subjects), len(block.metrics))[first:],
        DIGITS,
    )
    if block.is_host:
        return {"metrics": block.metrics, "values": np.ascontiguousarray(numbers[:, 0])}
    return {"subjects": block.subjects, "metrics": block.metrics, "values": numbers}


def _text(message: Mapping[str, object]) -> str:
    return orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY).decode()
