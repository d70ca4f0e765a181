"""TensorBoard's event files, which a run's script writes as it likes, are read in bounded memory and time."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import plugin_data_pb2

from jobs.logs import log_store
from jobs.models import Attempt
from tests.attacks.parsers.bounds import bounded
from tests.tracking.builders import logged_run
from tracking.events import event_reader, records, summaries
from tracking.models import EventFile, Metric, Param
from tracking.params import MAX_PARAMS_PER_RUN

SESSION = "_hparams_/session_start_info"


def record(content: bytes, length: int | None = None) -> bytes:
    """With a length of the test's choice, whose checksum is right."""
    head = struct.pack("<Q", len(content) if length is None else length)
    return head + struct.pack("<I", masked_crc32c(head)) + content + struct.pack("<I", masked_crc32c(content))


def event(*values: summary_pb2.Summary.Value) -> bytes:
    return record(event_pb2.Event(step=1, summary=summary_pb2.Summary(value=values)).SerializeToString())


def number(tag: str) -> summary_pb2.Summary.Value:
    return summary_pb2.Summary.Value(tag=tag, simple_value=0.5)


def hyperparameters(count: int) -> bytes:
    data = plugin_data_pb2.HParamsPluginData()
    for index in range(count):
        data.session_start_info.hparams[f"k{index}"].number_value = index
    value = summary_pb2.Summary.Value(tag=SESSION)
    value.metadata.plugin_data.content = data.SerializeToString()
    return event(value)


LARGE_TENSOR = tensor_pb2.TensorProto(dtype=1, tensor_shape={"dim": [{"size": 2**40}]})
HOSTILE: dict[str, Callable[[], bytes]] = {
    "a length of 2 GiB": lambda: record(b"x" * 100, 2**31 - 1),
    "a length of 1 TiB": lambda: record(b"x" * 100, 2**40),
    "the largest length": lambda: record(b"x" * 100, 2**64 - 1),
    "good records, then a length of 2 GiB": lambda: event(number("loss")) + record(b"x", 2**31 - 1),
    "many numbers in one event": lambda: event(*[number("a")] * 15_000),
    "empty events": lambda: record(b"") * 20_000,
    "a long tag": lambda: event(number("x" * 200_000)),
    "a tag of control characters": lambda: event(number("\0\n\x1b" * 60_000)),
    "nested groups": lambda: record(b"\x0b" * 200_000),
    "many hyperparameters": lambda: hyperparameters(15_000),
    "a tensor that says it is large": lambda: event(summary_pb2.Summary.Value(tag="a", tensor=LARGE_TENSOR)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_piece_is_read_or_refused_within_the_limits(name: str) -> None:
    def read() -> int:
        try:
            found, _ = records.complete_records(HOSTILE[name]())
            return len(summaries.parse_records(found, "").points)
        except records.DamagedEvents:
            return 0

    bounded(read)


def test_what_stands_before_a_record_with_a_false_length_is_read() -> None:
    piece = HOSTILE["good records, then a length of 2 GiB"]()
    found, size = records.complete_records(piece)
    assert (len(found), size) == (1, len(event(number("loss"))))


@pytest.mark.parametrize("name", ["a length of 1 TiB", "the largest length"])
def test_a_length_that_no_record_has_is_damage(name: str) -> None:
    with pytest.raises(records.DamagedEvents):
        records.complete_records(HOSTILE[name]())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("a length of 1 TiB", "damaged"),
        ("many hyperparameters", f"{MAX_PARAMS_PER_RUN} params"),
        ("a length of 2 GiB", ""),
    ],
)
def test_a_hostile_file_is_given_up_once_and_not_tried_for_ever(name: str, error: str) -> None:
    run = logged_run()
    attempt = Attempt.objects.create(run=run, number=1, placement={})
    file = "logs/events.out.tfevents.1.host.1.0"
    log_store.append(run.pk, 1, file, 0, HOSTILE[name]())
    assert event_reader.read_attempt(attempt, is_over=True)
    row = EventFile.objects.get(run=run)
    assert error in row.error
    assert row.is_whole or row.error
    assert not Metric.objects.filter(run=run).exists()
    assert not Param.objects.filter(run=run).exists()
