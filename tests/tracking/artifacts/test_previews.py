from __future__ import annotations

import json
from typing import Any

import pytest

from jobs import outputs
from tests.registry.builders import blob
from tests.tracking.builders import logged_run
from tracking.artifacts.previews import file_preview
from tracking.artifacts.previews.file_preview import FilePreview
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


def seen(path: str, content: bytes | str | dict[str, Any]) -> FilePreview:
    text = json.dumps(content) if isinstance(content, dict) else content
    data = text.encode() if isinstance(text, str) else text
    row = outputs.put_output(logged_run(), 0, path, blob(data), len(data))
    return file_preview.preview_file(row)


class TestText:
    def test_is_shown_as_it_is(self) -> None:
        assert seen("logs/train.log", "grün <b>") == FilePreview("text", text="grün <b>")

    def test_that_is_long_is_cut_between_two_characters(self) -> None:
        preview_result = seen("a.txt", "ä" * file_preview.MAX_TEXT_BYTES)
        assert (preview_result.kind, preview_result.is_cut, set(preview_result.text)) == ("text", True, {"ä"})
        assert seen("b.txt", "x" + "ä" * file_preview.MAX_TEXT_BYTES).kind == "text"

    @pytest.mark.parametrize("content", [b"\x00\x01", b"\xff\xfe binary"], ids=["NUL", "not UTF-8"])
    def test_that_is_none_is_not_shown(self, content: bytes) -> None:
        preview_result = seen("model.bin", content)
        assert (preview_result.kind, preview_result.sentence) == (
            "",
            "There is no preview of this kind of file.",
        )

    def test_whose_bytes_are_lost_is_said_to_be(self) -> None:
        row = outputs.put_output(logged_run(), 0, "a.txt", blob(b"lost soon"), 9)
        blobs.path(row.sha256).unlink()
        assert "missing on the hub" in file_preview.preview_file(row).sentence

    def test_of_a_page_is_text_and_never_a_page(self) -> None:
        assert seen("report.html", "<script>").kind == "text"


class TestJson:
    def test_is_laid_out(self) -> None:
        assert seen("config.json", '{"lr":0.1,"name":"ü"}').text == '{\n  "lr": 0.1,\n  "name": "ü"\n}'

    def test_that_is_broken_is_text(self) -> None:
        assert seen("config.json", '{"lr": ').text == '{"lr": '

    def test_nested_beyond_reason_is_text(self) -> None:
        assert seen("deep.json", "[" * 100_000).kind == "text"
        for depth in (300, 600, 900, 980, 2000):
            assert seen("deep.json", "[" * depth + "]" * depth).kind == "text"
            table = '{"columns": ["a"], "data": [[' + "[" * depth + "]" * depth + "]]}"
            assert seen("table.json", table).kind in ("table", "text")

    @pytest.mark.parametrize(
        "content", ['{"a": "\\ud800"}', '{"columns": ["\\ud800"], "data": [["\\ud800"]]}']
    )
    def test_with_half_a_character_can_be_sent(self, content: str) -> None:
        preview_result = seen("half.json", content)
        str(preview_result).encode()
        assert "?" in str(preview_result.table or preview_result.text)

    def test_of_plotly_is_a_figure(self) -> None:
        assert seen("f.json", {"data": [{"type": "bar", "y": [1]}], "layout": {}}).kind == "figure"

    @pytest.mark.parametrize(
        "content",
        [
            {"data": [1], "layout": {}},
            {"data": [], "layout": []},
            {"data": {}},
            {"data": [{"a": 1}]},
            {"data": [{"type": "choroplethmap"}], "layout": {}},
        ],
        ids=str,
    )
    def test_that_only_resembles_a_figure_is_text(self, content: dict[str, Any]) -> None:
        assert seen("f.json", content).kind == "text"


class TestTables:
    def test_of_mlflow_are_tables(self) -> None:
        preview_result = seen(
            "eval.json", {"columns": ["question", "score"], "data": [["why", 0.5], ["how", None]]}
        )
        assert preview_result.table is not None
        assert (preview_result.table.columns, preview_result.table.rows) == (
            ["question", "score"],
            [["why", "0.5"], ["how", "null"]],
        )

    def test_of_mlflow_name_the_files_of_their_images(self) -> None:
        image = {"type": "image", "filepath": "images/cat.png", "compressed_filepath": "images/cat.webp"}
        table = seen("eval.json", {"columns": ["image"], "data": [[image], [{"type": "image"}]]}).table
        assert table is not None
        assert table.rows == [["images/cat.png"], ['{"type": "image"}']]

    @pytest.mark.parametrize(("path", "sign"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")])
    def test_of_text_show_their_first_rows(self, path: str, sign: str) -> None:
        preview_result = seen(
            path, "\n".join(["step" + sign + "loss", *(f"{n}{sign}0.5" for n in range(300))])
        )
        assert preview_result.table is not None
        assert (preview_result.table.columns, preview_result.table.rows[-1], preview_result.is_cut) == (
            ["step", "loss"],
            ["199", "0.5"],
            True,
        )

    def test_that_are_cut_lose_their_last_half_row(self) -> None:
        preview_result = seen("wide.csv", "a,b\n" + f"{'x' * 5000},1\n" * 60)
        assert preview_result.table is not None
        assert {row[1] for row in preview_result.table.rows} == {"1"}

    def test_with_rows_of_any_length_stay_straight(self) -> None:
        preview_result = seen("odd.csv", "a,b\n1\n1,2,3\n")
        assert preview_result.table is not None
        assert (preview_result.table.columns, preview_result.table.rows) == (
            ["a", "b", ""],
            [["1", "", ""], ["1", "2", "3"]],
        )

    def test_that_are_very_wide_are_cut(self) -> None:
        preview_result = seen("wide.csv", ",".join(map(str, range(500))) + "\n" + "y" * 1000)
        assert preview_result.table is not None
        assert (
            len(preview_result.table.columns),
            len(preview_result.table.rows[0][0]),
            preview_result.is_cut,
        ) == (60, 301, True)


class TestImages:
    @pytest.mark.parametrize("path", ["a.png", "a.JPG", "a.svg", "a.webp"])
    def test_are_images_by_their_name(self, path: str) -> None:
        assert seen(path, b"\x89PNG").kind == "image"

    def test_that_are_too_large_are_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file_preview, "MAX_IMAGE_BYTES", 3)
        assert seen("a.png", b"\x89PNG") == FilePreview(
            "", sentence="The image is too large to be shown here."
        )
