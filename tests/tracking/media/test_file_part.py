"""The preview of a table, figure or HTML file that a page with media by step loads."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from jobs import outputs
from jobs.models import Run
from tests.people import client_of, make_viewer
from tests.registry.builders import blob
from tests.tracking.builders import logged_run
from tracking.media import file_part
from tracking.media.media_grid import has_media, media_grid
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db
HTTP_OK, HTTP_BAD, HTTP_MISSING = 200, 400, 404
TABLE = json.dumps({"columns": ["question", "score"], "data": [["why?", 0.5]]})
FIGURE = json.dumps({"data": [{"type": "bar", "y": [1]}], "layout": {}})

# As plotly 6 writes it, with `Plotly.newPlot` in the source of its library, too.
PLOTLY_PAGE = """<html><body><script>function a() { Plotly.newPlot("x") }</script>
<div id="1f2e"></div><script>
    if (document.getElementById("1f2e")) { Plotly.newPlot(                        "1f2e",
        [{"name":"\\u003cb\\u003e","y":[1,2],"type":"bar"}],                        {"title":{"text":"Bars"}},
        {"responsive": true}                    ) };</script></body></html>"""


@pytest.fixture
def run() -> Run:
    return logged_run()


@pytest.fixture
def viewer(run: Run) -> Client:
    return client_of(make_viewer())


def put(run: Run, path: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    sha256 = blob(data)
    outputs.put_output(run, 0, path, sha256, len(data))
    return sha256


def preview(viewer: Client, run: Run, path: str) -> str:
    answer = viewer.get(f"/runs/{run.number}/media/file/", {"file": path})
    assert answer.status_code == HTTP_OK, answer.content
    return answer.content.decode()


class TestPreview:
    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("samples/step_1.json", TABLE),
            ("step_1.csv", "question,score\nwhy?,0.5\n"),
            ("step_1.tsv", "question\tscore\nwhy?\t0.5\n"),
        ],
    )
    def test_of_a_table_is_its_rows(self, viewer: Client, run: Run, path: str, content: str) -> None:
        put(run, path, content)
        page = preview(viewer, run, path)
        assert "<th>question</th><th>score</th>" in page
        assert "<td>why?</td><td>0.5</td>" in page

    def test_of_a_figure_is_a_frame_without_an_origin(self, viewer: Client, run: Run) -> None:
        put(run, "plots/step_1.json", FIGURE)
        page = preview(viewer, run, "plots/step_1.json")
        address = f"/api/v1/artifacts/figures/{run.experiment_id}/{run.pk}/artifacts/plots/step_1.json"
        assert f'src="{address}" sandbox="allow-scripts"' in page

    def test_of_html_is_a_frame_without_scripts(self, viewer: Client, run: Run) -> None:
        put(run, "report_step_1.html", "<h1>Report</h1>")
        page = preview(viewer, run, "report_step_1.html")
        address = f"/api/v1/artifacts/html/{run.experiment_id}/{run.pk}/artifacts/report_step_1.html"
        assert f'src="{address}" sandbox title=' in page
        assert "scripts" not in page
        put(run, "report_step_2.html", "<SCRIPT>parent.document</SCRIPT>")
        page = preview(viewer, run, "report_step_2.html")
        assert "Its scripts do not run here." in page
        assert "parent.document" not in page

    def test_of_a_page_that_plotly_wrote_is_its_figure(self, viewer: Client, run: Run) -> None:
        put(run, "plots/step_1.html", PLOTLY_PAGE)
        page = preview(viewer, run, "plots/step_1.html")
        address = f"/api/v1/artifacts/figures/{run.experiment_id}/{run.pk}/artifacts/plots/step_1.html"
        assert f'src="{address}" sandbox="allow-scripts"' in page

    @pytest.mark.parametrize(
        "content",
        [
            PLOTLY_PAGE.replace("[{", "[1, {"),
            PLOTLY_PAGE.replace("}],", "}]"),
            PLOTLY_PAGE.replace("}],", f"}}, {'[' * 100_000}"),
            "<script>Plotly.newPlot(</script>",
        ],
    )
    def test_of_a_page_that_only_looks_like_it_is_html(self, viewer: Client, run: Run, content: str) -> None:
        put(run, "step_1.html", content)
        assert "Its scripts do not run here." in preview(viewer, run, "step_1.html")

    def test_of_a_long_table_is_its_first_rows(self, viewer: Client, run: Run) -> None:
        rows = [[number] for number in range(file_part.MAX_ROWS + 1)]
        put(run, "step_1.json", json.dumps({"columns": ["n"], "data": rows}))
        page = preview(viewer, run, "step_1.json")
        assert page.count("<td>") == file_part.MAX_ROWS
        assert "Only the beginning is shown." in page

    @pytest.mark.parametrize(
        ("path", "content", "sentence"),
        [
            ("step_1.json", '{"lr": 1}', "neither a table"),
            ("step_1.json", "[" * 100_000, "neither a table"),
            ("step_1.json", '{"columns": ', "neither a table"),
            ("step_1.csv", "", "cannot be read as a table"),
            ("step_1.csv", b"\0\1", "no preview of this kind"),
        ],
    )
    def test_of_another_file_is_a_sentence(
        self, viewer: Client, run: Run, path: str, content: str | bytes, sentence: str
    ) -> None:
        put(run, path, content)
        assert sentence in preview(viewer, run, path)

    def test_of_a_ragged_table_with_nan_and_markup_is_text(self, viewer: Client, run: Run) -> None:
        content = '{"columns": ["<b>"], "data": [[NaN, "<script>"], [], [{"a": [1]}]]}'
        put(run, "step_1.json", content)
        page = preview(viewer, run, "step_1.json")
        assert "<td>NaN</td><td>&lt;script&gt;</td>" in page
        assert "<th>&lt;b&gt;</th><th></th>" in page

    @pytest.mark.parametrize("path", ["step_1.json", "step_1.html"])
    def test_of_missing_bytes_is_a_sentence(self, viewer: Client, run: Run, path: str) -> None:
        blobs.path(put(run, path, f"{TABLE}{path}")).unlink()
        assert "missing on the hub" in preview(viewer, run, path)

    @pytest.mark.parametrize(
        ("path", "status"),
        [("", HTTP_BAD), ("../x", HTTP_BAD), ("<b>\0", HTTP_BAD), ("none.json", HTTP_MISSING)],
    )
    def test_of_no_file_is_refused(self, viewer: Client, run: Run, path: str, status: int) -> None:
        answer = viewer.get(f"/runs/{run.number}/media/file/", {"file": path})
        assert answer.status_code == status
        assert "<b>" not in answer.content.decode() or answer["Content-Type"] == "text/plain"


class TestSeries:
    def test_of_other_json_are_not_shown(self, run: Run) -> None:
        put(run, "epoch_1/config.json", '{"lr": 1}')
        assert not has_media(run)
        put(run, "samples/step_1.json", TABLE)
        put(run, "plots/step_1.json", FIGURE)
        assert has_media(run)
        keys = [row.key for row in media_grid([(run, run.attempt)]).rows]
        assert keys == ["plots/step_*.json", "samples/step_*.json"]

    def test_are_found_by_their_newest_file(self, run: Run) -> None:
        put(run, "step_1.json", "{}")
        put(run, "step_2.json", f" \n{TABLE}")
        assert has_media(run)
        put(run, "step_3.json", "{}")
        assert not has_media(run)

    def test_change_when_a_file_is_saved_again(self, run: Run) -> None:
        put(run, "samples/step_1.json", TABLE)
        before = media_grid([(run, run.attempt)]).config()
        assert media_grid([(run, run.attempt)]).config() == before
        put(run, "samples/step_1.json", TABLE.replace("why", "who"))
        assert media_grid([(run, run.attempt)]).config() != before
