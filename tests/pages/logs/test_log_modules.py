"""The pure parts of the log viewer, run where they live: in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from tests.pages.serving import served
from trainhub.static_files import HubStatic

pytestmark = pytest.mark.browser
PLAIN = {"fg": None, "bg": None, "flags": 0}


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """An empty page that can import our modules."""
    empty = Starlette(
        routes=[Route("/", lambda _: HTMLResponse("<!doctype html>")), Mount("/static", HubStatic())]
    )
    with served(empty) as address:
        page = browser.new_page()
        page.goto(address)
        yield page
        page.close()


def run(tab: Any, module: str, code: str, given: Any = None) -> Any:
    """The value of `code`, in which `m` is the module and `given` the argument."""
    return tab.evaluate(
        f"async (given) => {{ const m = await import('/static/js/log/{module}.js'); {code} }}", given
    )


class TestTerminal:
    @pytest.mark.parametrize(
        ("text", "seen"),
        [
            ("plain", "plain"),
            ("tab\there", "tab\there"),
            ("10%\r50%\r100%", "100%"),
            ("abcdef\rxy", "xycdef"),
            ("windows\r", "windows"),
            ("abc\b\bX", "aXc"),
            ("abc\r\x1b[K", ""),
            ("abcdef\r\x1b[2Cx\x1b[K", "abx"),
            ("abc\x1b[1K!", "   !"),
            ("abc\x1b[2Kx", "   x"),
            ("ab\x1b[5Gc", "ab  c"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("cut off \x1b[3", "cut off "),
            ("bell\x07 nul\x00", "bell nul"),
            ("\x1b(Bascii", "ascii"),
            ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
            ("日本\b語", "日語"),
            ("🚀\r🛑", "🛑"),
            ("\x1b[999999999Cfar", None),
        ],
    )
    def test_shows_what_a_terminal_would(self, tab: Any, text: str, seen: str | None) -> None:
        shown = run(tab, "terminal", "return m.plain(given)", text)
        assert shown.endswith("far") if seen is None else shown == seen

    @pytest.mark.parametrize(
        ("codes", "style"),
        [
            ("31", {"fg": 1}),
            ("97", {"fg": 15}),
            ("44", {"bg": 4}),
            ("1;4", {"flags": 9}),
            ("1;22", {}),
            ("31;39", {}),
            ("31;0", {}),
            ("", {}),
            ("38;5;9", {"fg": 9}),
            ("38;5;208", {"fg": "#ff8700"}),
            ("48;5;244", {"bg": "#808080"}),
            ("38;2;1;2;255", {"fg": "#0102ff"}),
            ("38:2::1:2:255", {"fg": "#0102ff"}),
            ("38;2;1;2;999", {}),
            ("38;5;300", {}),
            ("38", {}),
            ("4:3", {"flags": 8}),
            ("9999", {}),
            ("7;31", {"fg": 1, "flags": 16}),
        ],
    )
    def test_understands_colours_and_survives_nonsense(
        self, tab: Any, codes: str, style: dict[str, Any]
    ) -> None:
        segments = run(tab, "terminal", "return m.render(given).segments", f"\x1b[{codes}mx")
        assert segments == [{"text": "x", "style": PLAIN | style}]


class TestLines:
    def build(self, tab: Any, pieces: list[bytes], code: str) -> Any:
        body = (
            "const lines = new m.Lines(); for (const piece of given) lines.append(Uint8Array.from(piece));"
            + code
        )
        return run(tab, "lines", body, [list(piece) for piece in pieces])

    def shown(self, tab: Any, *pieces: bytes) -> list[str]:
        return list(
            self.build(
                tab, list(pieces), "return Array.from({length: lines.count}, (_, i) => lines.plain(i))"
            )
        )

    def test_cuts_at_newlines_however_the_bytes_arrive(self, tab: Any) -> None:
        whole = "one\ntwo ä\n\nlast".encode()
        expected = ["one", "two ä", "", "last"]
        assert self.shown(tab, whole) == expected
        assert self.shown(tab, *(bytes([byte]) for byte in whole)) == expected

    def test_bytes_that_are_not_utf8_show_as_replacement_characters(self, tab: Any) -> None:
        assert self.shown(tab, b"ok \xff\xfe\n\x80\n") == ["ok \ufffd\ufffd", "\ufffd"]

    def test_a_colour_lasts_over_lines_until_it_is_reset(self, tab: Any) -> None:
        colors = "return Array.from({length: lines.count}, (_, i) => lines.segments(i)[0].style.fg)"
        assert self.build(tab, [b"a\n\x1b[31mb\nc\x1b", b"[0m\nd\n"], colors) == [None, 1, 1, None]

    def test_an_endless_line_is_cut_between_characters_and_numbered_once(self, tab: Any) -> None:
        code = (
            "return [lines.count, lines.number(0), lines.number(1), lines.number(lines.count - 1), "
            "lines.plain(1)]"
        )
        count, first, second, last, text = self.build(tab, ["ä".encode() * 40_000 + b"\nnext\n"], code)
        assert (count, first, second, last) == (4, 1, None, 2)
        assert "\ufffd" not in text

    def test_of_an_endless_progress_bar_only_the_last_drawing_is_kept(self, tab: Any) -> None:
        bar = b"".join(b"\r%7d|%s" % (step, b"#" * 50) for step in range(2000))
        assert self.shown(tab, bar, b"\ndone\n") == [f"{1999:7}|{'#' * 50}", "done"]

    def test_finds_the_line_of_a_byte(self, tab: Any) -> None:
        code = "return [0, 3, 4, 8, 13, 999].map((byte) => lines.at(byte))"
        assert self.build(tab, [b"one\ntwo\nthree\n"], code) == [0, 0, 1, 2, 2, 2]


class TestMarks:
    def test_a_hit_may_span_differently_coloured_parts(self, tab: Any) -> None:
        given = {
            "segments": [{"text": "say Hel", "style": 1}, {"text": "lo hello", "style": 2}],
            "needle": "hello",
        }
        found = run(tab, "draw", "return m.marked(given.segments, given.needle)", given)
        assert [(part["text"], part.get("mark", False)) for part in found] == [
            ("say ", False),
            ("Hel", True),
            ("lo", True),
            (" ", False),
            ("hello", True),
        ]


class TestFeed:
    def test_takes_what_follows_drops_what_it_has_and_fetches_what_is_missing(self, tab: Any) -> None:
        code = """
          const { Lines } = await import('/static/js/log/lines.js');
          const text = 'zero one two three four ', bytes = new TextEncoder().encode(text), asked = [];
          window.fetch = async (address) => {
            const offset = Number(new URL(address, location).searchParams.get('offset'));
            asked.push(offset);
            return new Response(bytes.slice(offset), { headers: { 'X-Log-Size': bytes.length, 'X-Log-Complete': 'true' } });
          };
          const lines = new Lines(), states = [];
          const feed = new m.Feed({ url: '/log', attempt: 1, lines, onBytes() {}, onState: (state) => states.push(state) });
          const say = (from, to) => feed.receive({ offset: from, size: to - from, data: btoa(text.slice(from, to)) });
          say(0, 5); say(0, 5); say(3, 9);
          const live = lines.plain(0);
          say(13, 19);
          while (!states.length) await new Promise((resume) => setTimeout(resume, 5));
          feed.stop();
          return { live, asked, whole: lines.plain(0), last: states.at(-1) };
        """
        told = json.loads(json.dumps(run(tab, "feed", code)))
        assert told["live"] == "zero one "
        assert told["asked"] == [9]
        assert told["whole"] == "zero one two three four "
        assert told["last"] == {"size": 24, "complete": True, "error": ""}
