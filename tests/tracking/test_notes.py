from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.test import Client

from jobs.models import RunTag
from tests.people import client_of, make_contributor, make_stranger, make_viewer
from tests.tracking.builders import logged_run
from tracking.notes import TAG, TAGS, render
from tracking.notes_tab import note_of

DANGEROUS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](data:text/html,<script>)",
    "![a](javascript:alert(1))",
    "<a href='javascript:alert(1)'>a</a>",
    "[a](<javascript:alert(1)>)",
    '![x" onload="alert(1)](https://a)',
    "<svg onload=alert(1)>",
    '[a](https://a "x" onclick=alert(1))',
    "`<script>`",
    "<iframe src=https://a>",
    "&lt;script&gt;",
]


class Tags(HTMLParser):
    """Every tag that a browser would see, with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    @classmethod
    def of(cls, html: str) -> list[tuple[str, dict[str, str]]]:
        parser = cls()
        parser.feed(html)
        return parser.found


class TestRender:
    def test_makes_html_of_markdown(self) -> None:
        html = render("# Why\n- **large** batch\n\n|a|b|\n|-|-|\n|1|2|\n\n~~no~~ `x<1`")
        for piece in (
            "<h1>Why</h1>",
            "<strong>large</strong>",
            "<td>1</td>",
            "<s>no</s>",
            "<code>x&lt;1</code>",
        ):
            assert piece in html

    @pytest.mark.parametrize("text", DANGEROUS)
    def test_leaves_nothing_that_runs(self, text: str) -> None:
        for tag, attributes in Tags.of(render(text)):
            assert tag in TAGS
            assert set(attributes) <= {"href", "title", "rel", "start"}
            assert not attributes.get("href", "").lower().startswith(("javascript:", "data:"))

    def test_makes_links_of_images_and_gives_no_link_the_page(self) -> None:
        assert render("![curve](https://example.com/a.png)") == (
            '<p><a href="https://example.com/a.png" rel="noopener noreferrer nofollow">curve</a></p>\n'
        )


@pytest.mark.django_db
class TestPage:
    def test_shows_the_note_that_a_script_has_set(self) -> None:
        run = logged_run()
        RunTag.objects.create(run=run, experiment=run.experiment, key=TAG, value="a **note**")
        assert "<strong>note</strong>" in _page(client_of(make_viewer()), run.number)

    def test_a_contributor_writes_it_and_takes_it_away(self) -> None:
        run, client = logged_run(), client_of(make_contributor())
        _save(client, run.number, "first")
        assert note_of(run) == "first"
        _save(client, run.number, "")
        assert not RunTag.objects.filter(run=run).exists()

    def test_a_viewer_reads_alone_and_a_stranger_not_at_all(self) -> None:
        run = logged_run()
        assert (
            client_of(make_viewer()).post(f"/runs/{run.number}/notes/save/", {"note": "x"}).status_code == 403
        )
        assert (
            client_of(make_stranger()).post(f"/runs/{run.number}/notes/save/", {"note": "x"}).status_code
            == 404
        )
        assert "Write a note" not in _page(client_of(make_viewer()), run.number)

    def test_what_somebody_else_wrote_meanwhile_is_not_lost_and_neither_is_what_was_typed(self) -> None:
        run, client = logged_run(), client_of(make_contributor())
        seen = _seen(client, run.number)
        _save(client, run.number, "theirs")
        page = client.post(
            f"/runs/{run.number}/notes/save/", {"note": "mine", "seen": seen}, follow=True
        ).content.decode()
        assert note_of(run) == "theirs"
        assert "The note was changed since you opened it" in page
        assert "mine</textarea>" in page

    def test_a_note_with_characters_that_cannot_be_stored_is_refused(self) -> None:
        run, client = logged_run(), client_of(make_contributor())
        sent = {"note": "a\0b", "seen": _seen(client, run.number)}
        page = client.post(f"/runs/{run.number}/notes/save/", sent, follow=True)
        assert page.status_code == 200
        assert "The note has characters that cannot be stored; remove them." in page.content.decode()
        assert note_of(run) == ""

    def test_a_note_that_is_too_long_is_refused_and_kept_for_shortening(self) -> None:
        run, client = logged_run(), client_of(make_contributor())
        sent = {"note": "x" * 100_001, "seen": _seen(client, run.number)}
        page = client.post(f"/runs/{run.number}/notes/save/", sent, follow=True).content.decode()
        assert "shorten it to 100,000 characters" in page
        assert f"{sent['note']}</textarea>" in page


def _page(client: Client, number: int, query: str = "") -> str:
    answer = client.get(f"/runs/{number}/notes/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def _seen(client: Client, number: int) -> str:
    return str(client.get(f"/runs/{number}/notes/?edit=1").context["seen"])


def _save(client: Client, number: int, note: str) -> None:
    answer = client.post(f"/runs/{number}/notes/save/", {"note": note, "seen": _seen(client, number)})
    assert answer.status_code == 302
