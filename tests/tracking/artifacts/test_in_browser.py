"""A run's files in a real browser on a real hub: walked through by keyboard, looked into, fetched together,
appearing live."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin
from tests.violations import WatchedBrowser

pytestmark = pytest.mark.browser
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="90" height="50">
<rect width="90" height="50" fill="teal"/>
<script>document.title = "owned"; top.document.title = "owned";</script></svg>"""


@pytest.fixture
def tab(page: Any) -> Iterator[Any]:
    """A page on which nothing may fail."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


def put(run: Logged, **files: str) -> None:
    for path, content in files.items():
        run.put(path, content.encode())


@pytest.fixture(scope="module")
def logged(hub: Hub) -> Logged:
    run = begin(hub, "files")
    put(
        run,
        **{
            "README.md": "# Results\n<script>document.title='owned'</script>\n**good**",
            "config.json": '{"lr": 0.1}',
            "history.csv": "step,loss\n1,0.5\n",
            "logs/train.log": "epoch 1\n",
            "plots/box.svg": SVG,
            "checkpoints/last/model.pt": "weights",
            "checkpoints/best.pt": "best",
        },
    )
    run.end()
    return run


def names(tab: Any) -> list[str]:
    return [text.strip() for text in tab.locator(".ar-folder .ar-name").all_inner_texts()]


class TestBrowsing:
    def test_folders_open_one_at_a_time_and_the_browser_goes_back(self, tab: Any, logged: Logged) -> None:
        tab.goto(f"/runs/{logged.number}/outputs/")
        assert names(tab) == ["checkpoints/", "logs/", "plots/", "README.md", "config.json", "history.csv"]
        tab.get_by_role("link", name="checkpoints/", exact=True).press("Enter")
        tab.get_by_role("link", name="best.pt", exact=True).wait_for()
        assert names(tab) == ["last/", "best.pt"]
        assert tab.url.endswith("?path=checkpoints")
        tab.go_back()
        tab.get_by_role("link", name="README.md", exact=True).wait_for()
        tab.reload()
        assert names(tab)[0] == "checkpoints/"

    def test_a_refresh_leaves_the_focus_where_it_is(self, tab: Any, logged: Logged) -> None:
        tab.goto(f"/runs/{logged.number}/outputs/")
        tab.wait_for_load_state("networkidle")
        link = tab.get_by_role("link", name="logs/", exact=True)
        link.focus()
        old = link.element_handle()
        with tab.expect_response(lambda response: response.url.endswith("/outputs/")):
            tab.evaluate("document.querySelector('#outputs').dispatchEvent(new CustomEvent('live'))")
        tab.wait_for_function("link => !link.isConnected", arg=old)
        assert link.evaluate("link => link === document.activeElement")
        tab.keyboard.press("Enter")
        tab.get_by_role("link", name="train.log", exact=True).wait_for()

    @pytest.mark.parametrize(
        ("path", "seen"),
        [
            ("logs/train.log", "epoch 1"),
            ("config.json", '"lr": 0.1'),
            ("history.csv", "0.5"),
            ("README.md", "good"),
        ],
    )
    def test_a_file_is_shown_beside_its_folder(self, path: str, seen: str, tab: Any, logged: Logged) -> None:
        tab.goto(f"/runs/{logged.number}/outputs/?path={path.rpartition('/')[0]}")
        tab.get_by_role("link", name=path.rpartition("/")[2], exact=True).click()
        tab.locator(".ar-file").get_by_text(seen).wait_for()
        tab.get_by_role("link", name="Close the preview").click()
        tab.locator(".ar-file").wait_for(state="detached")

    def test_chosen_files_come_as_one_zip(self, tab: Any, logged: Logged, tmp_path: Path) -> None:
        tab.goto(f"/runs/{logged.number}/outputs/")
        tab.get_by_label("Select checkpoints").check()
        tab.get_by_label("Select config.json").check()
        with tab.expect_download() as download:
            tab.get_by_role("button", name="Download selected").click()
        download.value.save_as(tmp_path / "some.zip")
        with zipfile.ZipFile(tmp_path / "some.zip") as archive:
            assert sorted(archive.namelist()) == [
                "checkpoints/best.pt",
                "checkpoints/last/model.pt",
                "config.json",
            ]
            assert archive.testzip() is None


class TestHarmless:
    def test_an_svg_is_seen_and_runs_nothing(self, tab: Any, logged: Logged) -> None:
        tab.goto(f"/runs/{logged.number}/outputs/?file=plots/box.svg")
        image = tab.locator(".ar-image img")
        eventually(lambda: image.evaluate("image => image.naturalWidth") == 90, what="the image is drawn")
        assert "owned" not in tab.title()
        with tab.expect_download():
            tab.evaluate("address => { location.href = address }", image.get_attribute("src"))
        assert "owned" not in tab.title()

    def test_a_figure_is_drawn_and_fetches_nothing_from_elsewhere(self, tab: Any, hub: Hub) -> None:
        with counting() as (url, asked):
            figure = {
                "data": [{"type": "scatter", "y": [1, 3, 2]}, {"type": "image", "source": f"{url}i.png"}],
                "layout": {"title": {"text": "Loss"}, "images": [{"source": f"{url}l.png", "x": 0, "y": 1}]},
            }
            run = begin(hub, "figure")
            put(run, **{"f.json": json.dumps(figure)})
            run.end()
            tab.goto(f"/runs/{run.number}/outputs/?file=f.json")
            frame = tab.frame_locator(".ar-figure")
            frame.locator(".main-svg").first.wait_for()
            frame.get_by_text("Loss").wait_for()
            assert asked == []

    def test_a_figure_knows_nothing_of_who_looks_at_it(
        self, tab: Any, hub: Hub, browser: WatchedBrowser
    ) -> None:
        run = begin(hub, "plain figure")
        put(run, **{"f.json": '{"data": [{"y": [1, 2]}], "layout": {}}'})
        tab.goto(f"/runs/{run.number}/outputs/?file=f.json")
        tab.frame_locator(".ar-figure").locator(".main-svg").first.wait_for()
        frame = next(frame for frame in tab.frames if "figures" in frame.url)
        assert frame.evaluate("self.origin") == "null"
        reach = (
            "async () => { try { await fetch('/api/v1/runs/'); return 'reached' } catch { return "
            "'refused' } }"
        )
        assert frame.evaluate(reach) == "refused"
        (violation,) = browser.take_violations()
        assert violation.startswith("connect-src refused")
        run.end()


class TestLive:
    def test_a_file_appears_as_it_is_logged_but_not_from_under_who_is_choosing(
        self, tab: Any, hub: Hub
    ) -> None:
        run = begin(hub, "live files")
        tab.goto(f"/runs/{run.number}/outputs/")
        tab.get_by_text("No outputs yet").wait_for()
        put(run, **{"first.txt": "1"})
        tab.get_by_role("link", name="first.txt", exact=True).wait_for()
        put(run, **{"second.txt": "2"})
        tab.get_by_role("link", name="second.txt", exact=True).wait_for()
        tab.get_by_label("Select first.txt").check()
        with _told(tab):
            put(run, **{"third.txt": "3"})
        assert names(tab) == ["first.txt", "second.txt"]
        assert tab.get_by_label("Select first.txt").is_checked()
        run.end()


class TestNotes:
    def test_a_note_is_written_and_read(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "noted")
        tab.goto(f"/runs/{run.number}/notes/")
        tab.get_by_role("link", name="Write a note").click()
        tab.get_by_label("Note in Markdown").fill(
            "## Why\nA **larger** batch. <script>document.title='owned'</script>"
        )
        tab.get_by_role("button", name="Save").click()
        tab.get_by_role("heading", name="Why").wait_for()
        assert tab.locator(".th-markdown strong").inner_text() == "larger"
        assert "owned" not in tab.title()
        run.end()


@contextmanager
def _told(tab: Any) -> Iterator[None]:
    """Until the page has heard that the run's files have changed, and would have asked for them."""
    tab.evaluate("""() => {
        window.refused = 0;
        document.getElementById("outputs").addEventListener("htmx:beforeRequest", (event) => {
            if (event.defaultPrevented) window.refused += 1;
        });
    }""")
    yield
    eventually(lambda: tab.evaluate("window.refused") > 0, what="the page has heard of it")


@contextmanager
def counting() -> Iterator[tuple[str, list[str]]]:
    """A server elsewhere, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
