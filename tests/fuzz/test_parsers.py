"""Files, zips, filters and patterns of strangers."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from jobs.imports import import_spec
from jobs.logs import log_scan
from jobs.logs.log_pattern import compile_pattern
from jobs.sources import zips
from jobs.sources.ignore_rules import IgnoreRules
from jobs.sources.source_files import SnapshotError
from tests.fuzz.conftest import PROFILE
from tests.fuzz.limits import answer_of
from tests.fuzz.strategies import JSON_VALUES, damaged
from tests.jobs.imports.test_hostile import FILES
from tracking import notes
from tracking.artifacts.previews import documents, tables
from tracking.events import records, summaries
from tracking.search import FilterError
from tracking.search.parser import parse, parse_order
from tracking.search.patterns import matches
from trainhub_launch.errors import SpecError

FILTER_WORDS = [
    "metrics.loss", "params.`a b`", 'tags."x"', "attributes.start_time", "min(metrics.loss)", "run_name",
    "duration", ">", "<=",
    "=", "!=", "LIKE", "ILIKE", "IN", "NOT", "AND", "OR", "IS", "NULL", "(", ")", ",", "'a%'", "0.5",
    "1e999", "7d", "nan", "'",
    "`", ".",
]  # fmt: skip
REGEX_PARTS = [
    "a", ".", "[^a]", r"\d", r"\w", r"\pL", "(a|b)", "(?i)", "^", "$", r"\b", "(", ")", "[", "|", "*", "+",
    "?", "{0,9}", "{99}",
    "{999}", "\\", "é", "(?:x*)*",
]  # fmt: skip
MARKDOWN_PARTS = [*"*_`[]()!<>#-|~&\\ \n", "[a](", "![", "> ", "```", "1. ", "javascript:", "<script>"]


def record(content: bytes) -> bytes:
    head = struct.pack("<Q", len(content))
    return head + struct.pack("<I", masked_crc32c(head)) + content + struct.pack("<I", masked_crc32c(content))


def event_file() -> bytes:
    values = [summary_pb2.Summary.Value(tag=f"loss{number}", simple_value=number / 3) for number in range(3)]
    events = [
        event_pb2.Event(step=step, wall_time=step, summary=summary_pb2.Summary(value=values))
        for step in range(3)
    ]
    return b"".join(record(event.SerializeToString()) for event in events)


def source_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("src/train.py", "print(1)\n")
        archive.writestr("src/.trainhubignore", "*.bin\n")
        archive.writestr("src/data.bin", b"\0" * 1000, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def read_events(data: bytes) -> int:
    found, _ = records.complete_records(data)
    told = summaries.parse_records(found, "prefix/")
    assert all(0 < len(point.key) <= summaries.MAX_KEY_LENGTH for point in told.points)
    return len(told.points)


@PROFILE
@given(damaged(event_file()) | st.binary(max_size=500) | st.binary(max_size=200).map(record))
def test_event_files(data: bytes) -> None:
    answer_of(lambda: read_events(data), records.DamagedEvents)


@PROFILE
@given(damaged(source_zip()) | st.binary(max_size=500))
def test_zips(data: bytes) -> None:
    answer_of(lambda: zips.read_zip(io.BytesIO(data)), SnapshotError)


@PROFILE
@given(
    st.lists(st.text("*/!\\[]ab?-^ #", max_size=30), max_size=8).map(tuple),
    st.text("ab/.", min_size=1, max_size=200),
)
def test_ignore_files(lines: tuple[str, ...], path: str) -> None:
    answer_of(lambda: IgnoreRules(lines, ".trainhubignore").is_ignored(path), SnapshotError)


@PROFILE
@given(
    st.lists(st.sampled_from(FILTER_WORDS) | st.text(max_size=5), max_size=40).map(" ".join)
    | st.text(max_size=300)
)
def test_filters_and_orders(text: str) -> None:
    answer_of(lambda: parse(text), FilterError)
    answer_of(lambda: parse_order(text), FilterError)


@PROFILE
@given(st.text("%_\\ab", max_size=200), st.text("ab", max_size=3000))
def test_like_patterns(pattern: str, text: str) -> None:
    answer_of(lambda: matches(pattern, text, any_case=True))


@PROFILE
@given(st.lists(st.sampled_from(REGEX_PARTS), min_size=1, max_size=60).map("".join), st.binary(max_size=3000))
def test_log_patterns(tmp_path_factory: pytest.TempPathFactory, text: str, log: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.log"
    file.write_bytes((log + b"\n") * 3 + b"aab" * 3000)

    def search() -> int:
        pattern = compile_pattern(text, regex=True, case=False)
        with file.open("rb") as opened:
            size = file.stat().st_size
            scan = log_scan.LogScan(
                opened.fileno(),
                size,
                log_scan.ScanPosition(0),
                size,
                pattern=pattern,
                buffer=bytearray(log_scan.window_bytes(pattern)),
            )
            count = 0
            while (found := scan.search_window(1000)) is not None:
                count += len(found)
                assert all(len(item.text) <= 2 * log_scan.MAX_TEXT_BYTES for item in found)
            return count

    answer_of(search, SpecError)


def json_bytes() -> st.SearchStrategy[bytes]:
    valid = JSON_VALUES.map(lambda value: json.dumps(value).encode())
    table = st.fixed_dictionaries(
        {"columns": JSON_VALUES, "data": st.lists(st.lists(JSON_VALUES, max_size=3), max_size=3)}
    )
    figure = st.fixed_dictionaries(
        {"data": st.lists(st.dictionaries(st.text(max_size=5), JSON_VALUES)), "layout": JSON_VALUES}
    )
    nested = st.tuples(st.integers(1, 2000), st.integers(1, 2000)).map(
        lambda n: b"[" * n[0] + b"0," * n[1] + b"0" + b"]" * n[0]
    )
    shaped = (table | figure).map(lambda value: json.dumps(value).encode())
    broken = damaged(json.dumps({"data": [{"x": [1, None]}], "layout": {}}).encode())
    return valid | shaped | nested | broken | st.binary(max_size=200)


@PROFILE
@given(json_bytes())
def test_json_files(data: bytes) -> None:
    shown = answer_of(lambda: documents.preview_json(data), documents.NotPreviewable)
    if shown is not None:
        assert len(shown.text) <= documents.MAX_TEXT
        shown.text.encode()
    answer_of(lambda: documents.figure_json(data), documents.NotPreviewable)


@PROFILE
@given(
    st.text(max_size=2000) | st.text('",;\t\n\r a', max_size=3000), st.sampled_from(",;\t|"), st.booleans()
)
def test_csv_files(text: str, delimiter: str, is_cut: bool) -> None:
    shown = answer_of(lambda: tables.parse_csv(text, delimiter=delimiter, is_cut=is_cut))
    if shown is not None:
        assert len(shown.columns) <= tables.MAX_COLUMNS
        assert all(len(row) == len(shown.columns) for row in shown.rows)


@PROFILE
@given(st.text(max_size=500) | st.lists(st.sampled_from(MARKDOWN_PARTS), max_size=900).map("".join))
def test_markdown(text: str) -> None:
    html = answer_of(lambda: notes.render(text))
    assert html is not None
    assert "<script" not in html
    assert 'href="javascript' not in html.lower()


def test_the_files_that_are_damaged_here_are_read_when_they_are_whole(tmp_path: Path) -> None:
    assert read_events(event_file()) == 9
    assert len(zips.read_zip(io.BytesIO(source_zip())).entries) == 2


@PROFILE
@given(st.sampled_from(sorted(FILES)), st.data())
def test_files_of_other_launchers(source: str, data: st.DataObject) -> None:
    text = data.draw(damaged(FILES[source].encode())).decode(errors="replace")
    answer_of(lambda: import_spec(source, text), SpecError)
