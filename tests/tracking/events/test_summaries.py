from __future__ import annotations

import math
import struct

import pytest
from tensorboard.compat.proto import event_pb2

from tests.tracking.events.files import (
    AT_S,
    bare,
    event,
    event_file,
    histogram,
    image,
    new,
    old,
    session,
    text,
)
from tracking.events import records, summaries
from tracking.events.records import DamagedEvents
from tracking.events.summaries import EventData
from tracking.metrics.points import Point

MS = int(AT_S * 1000)


def parsed(*events: object, prefix: str = "") -> EventData:
    complete, size = records.complete_records(content := event_file(*events))
    assert size == len(content)
    return summaries.parse_records(complete, prefix)


class TestNumbers:
    @pytest.mark.parametrize("kind", [old, new, bare])
    def test_are_read_however_they_are_written(self, kind: object) -> None:
        summary = kind("train/loss", 0.25)  # type: ignore[operator]
        assert parsed(event(summary, step=7)).points == [Point("train/loss", 0.25, 7, MS)]

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
    def test_that_are_none_are_kept(self, value: float) -> None:
        (point,) = parsed(event(old("loss", value))).points
        assert str(point.value) == str(value)

    def test_of_several_tags_of_an_event_and_whole_ones(self) -> None:
        data = parsed(event(old("a", 1.0), new("b", 2.0), step=3), event(bare("c", 5), step=-1))
        assert [(point.key, point.value, point.step) for point in data.points] == [
            ("a", 1, 3),
            ("b", 2, 3),
            ("c", 5, -1),
        ]

    def test_bear_their_folder(self) -> None:
        assert (
            parsed(event(new("epoch_loss", 1.0)), prefix="validation/").points[0].key
            == "validation/epoch_loss"
        )

    def test_have_names_that_can_be_shown(self) -> None:
        tags = ("a\nb", "x" * 300, " ", "größe (%)")
        assert [point.key for point in parsed(event(*(old(tag, 1.0) for tag in tags))).points] == [
            "a_b",
            "x" * 250,
            "größe (%)",
        ]

    @pytest.mark.parametrize("at_s", [math.nan, math.inf, -5.0, 1e300])
    def test_of_no_possible_time_are_kept(self, at_s: float) -> None:
        assert parsed(event(old("a", 1.0), at_s=at_s)).points == [Point("a", 1.0, 0, 0)]


class TestOtherThings:
    @pytest.mark.parametrize(
        "value",
        [
            text("notes", "hello"),
            image("sample"),
            histogram("weights"),
            bare("matrix", [[1.0, 2.0]]),
            bare("words", b"x"),
        ],
    )
    def test_are_left_out(self, value: object) -> None:
        assert parsed(event(value), event_pb2.Event(graph_def=b"graph")) == EventData()

    def test_hyperparameters_become_params(self) -> None:
        data = parsed(
            event(session({"lr": 0.1, "layers": 3.0, "optimizer": "adam", "amp": True, "odd": "a\0b"}))
        )
        assert data.params == {"lr": "0.1", "layers": "3", "optimizer": "adam", "amp": "True", "odd": "ab"}

    def test_hyperparameters_that_cannot_be_read_leave_the_rest(self) -> None:
        value = session({"lr": 0.1})
        value.metadata.plugin_data.content = b"\xff\xff"
        data = parsed(event(value, old("loss", 1.0)))
        assert (data.params, [point.key for point in data.points]) == ({}, ["loss"])


class TestRecords:
    def test_one_that_is_cut_waits_for_its_rest(self) -> None:
        data = event_file(*[event(old("a", 1.0))] * 3)
        one = records.complete_records(event_file())[1]
        each = (len(data) - one) // 3
        for cut in range(one, len(data)):
            complete, size = records.complete_records(data[:cut])
            assert (len(complete), size) == (1 + (cut - one) // each, one + (cut - one) // each * each)

    @pytest.mark.parametrize(
        "data", [b"no event file, but text\n" * 3, struct.pack("<QI", 5, 0) + b"hello" + b"sums"]
    )
    def test_what_is_none_is_damaged(self, data: bytes) -> None:
        with pytest.raises(DamagedEvents):
            records.complete_records(data)

    def test_those_before_a_damaged_one_are_read(self) -> None:
        good, data = event_file(), bytearray(event_file(event(old("a", 1.0))))
        data[-6] ^= 1
        assert records.complete_records(bytes(data))[1] == len(good)
        with pytest.raises(DamagedEvents):
            records.complete_records(bytes(data[len(good) :]))

    def test_one_that_is_no_event_is_damaged(self) -> None:
        with pytest.raises(DamagedEvents):
            summaries.parse_records([b"\xff\xff\xff"], "")
