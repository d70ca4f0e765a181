"""S7: opening the preview of a file takes bounded memory and time, whatever a script has left in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs import outputs
from tests.attacks.parsers.bounds import bounded
from tests.registry.builders import blob
from tests.tracking.builders import logged_run
from tracking import notes
from tracking.artifacts.previews import documents, file_preview, isolation, tables
from tracking.artifacts.previews.file_preview import FilePreview

MIB = 2**20


def nested(depth: int, elements: int) -> bytes:
    """Small on disk, and with two blanks of indentation for each level before every element."""
    return b"[" * depth + b",".join([b"0"] * elements) + b"]" * depth


def repeated(unit: bytes, size: int, begin: bytes = b"[", end: bytes = b"0]") -> bytes:
    return begin + unit * (size // len(unit)) + end


HOSTILE_JSON: dict[str, Callable[[], bytes]] = {
    "nested, 0.1 MB, in the hub's process": lambda: nested(400, 60_000),
    "nested, 0.2 MB": lambda: nested(400, 100_000),
    "nested, 0.8 MB": lambda: nested(400, 400_000),
    "empty lists": lambda: repeated(b"[],", 8_000_000),
    "small objects": lambda: repeated(b'{"":0},', 8_000_000),
    "small objects, in the hub's process": lambda: repeated(b'{"":0},', 130_000),
    "a figure of small objects": lambda: repeated(b'{"":0},', 8_000_000, b'{"layout":{},"data":[', b"{}]}"),
    "a table of a million columns": lambda: repeated(b"0,", 4_000_000, b'{"columns":[0],"data":[[', b"0]]}"),
    "a cell with much inside": lambda: repeated(b"[],", 4_000_000, b'{"columns":["a"],"data":[[[', b"0]]]}"),
    "one long string": lambda: b'"' + b"x" * 8_000_000 + b'"',
    "a huge number": lambda: b"9" * 8_000_000,
    "nested without end": lambda: b"[" * 8_000_000,
    "objects without end": lambda: b'{"":' * 2_000_000,
    "one key many times": lambda: repeated(b'"a":[],', 8_000_000, b"{", b'"a":0}'),
    "invalid UTF-8": lambda: b'["' + b"\xff" * 2_000_000 + b'"]',
    "halves of characters": lambda: b'"' + b"\\ud800" * 1_300_000 + b'"',
    "larger than is parsed": lambda: repeated(b"[],", 20 * MIB),
}
HOSTILE_TEXT: dict[str, Callable[[], bytes]] = {
    "million columns.csv": lambda: b"," * 3_000_000,
    "one field.csv": lambda: b'"' + b"x" * 20_000_000,
    "quotes.csv": lambda: b'""' * 1_000_000,
    "line feeds.csv": lambda: b"\n" * 1_000_000,
    "carriage returns.csv": lambda: b"\r" * 1_000_000,
    "tabs.tsv": lambda: b"\t\x85\x1c" * 500_000,
    "one line.txt": lambda: b"x" * 20_000_000,
    "images.md": lambda: b"![" * 100_000,
    "brackets.md": lambda: b"[" * 200_000,
    "emphasis.md": lambda: b"*a_ " * 50_000,
    "quotes.md": lambda: b"> " * 100_000,
    "references.md": lambda: b"".join(b"[%d]: a\n" % number for number in range(20_000)),
    "fences.md": lambda: b"`".join(b"`" * number for number in range(600)),
    "notebook.ipynb": lambda: b'{"cells":[' + b'{"cell_type":"code","source":[]},' * 100_000 + b"]}",
}


def seen(name: str, data: bytes) -> FilePreview:
    row = outputs.put_output(logged_run(), 0, name, blob(data), len(data))
    return bounded(lambda: file_preview.preview_file(row))


@pytest.mark.django_db
@pytest.mark.parametrize("name", HOSTILE_JSON)
def test_a_json_file_is_shown_within_the_limits(name: str) -> None:
    shown = seen("a.json", HOSTILE_JSON[name]())
    assert shown.kind in ("text", "table", "figure", "")
    assert len(shown.text) <= documents.MAX_TEXT


@pytest.mark.django_db
@pytest.mark.parametrize("name", HOSTILE_TEXT)
def test_a_text_a_table_and_a_note_are_shown_within_the_limits(name: str) -> None:
    shown = seen(name, HOSTILE_TEXT[name]())
    assert len(shown.text) <= documents.MAX_TEXT
    assert len(shown.html or "") <= 6 * notes.MAX_LENGTH
    if shown.table is not None:
        assert len(shown.table.columns) <= tables.MAX_COLUMNS
        assert len(shown.table.rows) <= tables.MAX_ROWS
        assert all(len(cell) <= tables.MAX_CELL_LENGTH + 1 for row in shown.table.rows for cell in row)


@pytest.mark.parametrize(
    "name", ["a figure of small objects", "nested, 0.8 MB", "a huge number", "larger than is parsed"]
)
def test_a_figure_is_made_within_the_limits_or_refused(tmp_path: Path, name: str) -> None:
    data = HOSTILE_JSON[name]()
    file = tmp_path / "figure.json"
    file.write_bytes(data)

    def drawn() -> int:
        try:
            return len(isolation.isolated_figure_json(file, len(data)))
        except documents.NotPreviewable:
            return 0

    assert bounded(drawn) <= 2 * isolation.MAX_JSON_BYTES


def test_a_large_honest_figure_is_still_drawn(tmp_path: Path) -> None:
    """6 MiB, as a scatter plot of 200,000 points has."""
    numbers = ",".join(f"{number / 7:.12f}" for number in range(200_000)).encode()
    data = (
        b'{"data":[{"type":"scatter","y":['
        + numbers
        + b',NaN,"</script>"]}],"layout":{"images":[{"source":"http://a"}]}}'
    )
    file = tmp_path / "figure.json"
    file.write_bytes(data)
    assert 3 * MIB < len(data) < isolation.MAX_JSON_BYTES
    drawn = bounded(lambda: isolation.isolated_figure_json(file, len(data)))
    assert b"<" not in drawn
    assert b"null" in drawn
    assert b"http://a" not in drawn


def test_files_wait_for_their_turn_to_be_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_slots", threading.BoundedSemaphore(1))
    monkeypatch.setattr(isolation, "MAX_WALL_S", 0.2)
    file = tmp_path / "a.json"
    file.write_bytes(nested(1, 200_000))
    with isolation._slot(), pytest.raises(isolation.PreviewBusy, match="other files"):
        isolation.isolated_preview_json(file, file.stat().st_size)


@pytest.mark.django_db
def test_a_file_that_cannot_be_parsed_within_the_limits_is_shown_as_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "MAX_MEMORY_BYTES", 60 * MIB)
    data = repeated(b'{"":0},', 2_000_000)
    row = outputs.put_output(logged_run(), 0, "a.json", blob(data), len(data))
    shown = file_preview.preview_file(row)
    assert (shown.kind, shown.is_cut) == ("text", True)
    assert shown.text == data[: documents.MAX_TEXT].decode()
