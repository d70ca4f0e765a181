"""The documents as pages below /docs/: each has links and anchors that lead somewhere, and a search."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from tests.people import client_of, make_viewer
from trainhub import __version__
from trainhub.documentation import library
from trainhub.documentation.rendering import anchor_of, render
from trainhub.documentation.search import find

PROJECT = Path(__file__).resolve().parents[2]
LINK = re.compile(r'<a href="([^"]*)"')
SLUGS = sorted(library.documents())


def test_every_document_has_a_page() -> None:
    paths = {document.path for document in library.documents().values()}
    assert paths >= {*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")}


def test_the_list_is_that_of_the_readme() -> None:
    entries = [entry for _, group in library.contents() for entry in group]
    assert len(entries) == len({entry.slug for entry in entries}) > 20
    assert [title for title, _ in library.contents()] == [
        "Use TrainHub",
        "Operate TrainHub",
        "Develop TrainHub",
    ]


@pytest.mark.parametrize("slug", SLUGS)
def test_links_of_a_document_lead_to_pages_and_headings(slug: str) -> None:
    wrong = []
    for link in map(unescape, LINK.findall(render(slug).html)):
        path, _, anchor = link.partition("#")
        target = path.removeprefix("/docs/").strip("/") if path else slug
        if "://" in link or link == "/docs/" or link.startswith("mailto:"):
            continue
        if target not in library.documents() or (anchor and f'id="{anchor}"' not in render(target).html):
            wrong.append(link)
    assert not wrong


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Join a machine", "join-a-machine"), ("`/metrics` & co.", "metrics--co"), ("What's new?", "whats-new")],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor


class TestSearch:
    def test_a_heading_comes_before_a_mention(self) -> None:
        hits = find("join a machine")
        assert (hits[0].section.document.slug, hits[0].section.anchor) == ("nodes", "join-a-machine")

    def test_every_word_must_be_there(self) -> None:
        assert find("token expiry")
        assert not find("token zzzzunknown")

    def test_no_words_find_nothing(self) -> None:
        assert find("  ") == []

    def test_a_comment_in_a_program_is_no_heading(self) -> None:
        headings = {hit.section.heading for hit in find("make demo")}
        assert not any(heading.startswith("or:") for heading in headings)


@pytest.mark.django_db
class TestPages:
    def test_the_index_and_a_search(self) -> None:
        viewer = client_of(make_viewer())
        text = viewer.get("/docs/").content.decode()
        assert reverse("document", args=["nodes"]) in text
        found = viewer.get("/docs/", {"q": "<b>drain"}).content.decode()
        assert "<b>drain" not in found
        assert "No section has all these words" in found
        assert "/docs/nodes/#" in viewer.get("/docs/", {"q": "join machine"}).content.decode()

    def test_what_is_new_says_which_version_this_is(self) -> None:
        client = client_of(make_viewer())
        page = client.get("/docs/changelog/").content.decode()
        assert f"This hub is TrainHub {__version__}." in page
        assert 'href="/docs/changelog/"' in client.get("/docs/").content.decode()

    def test_a_document_with_its_picture(self) -> None:
        viewer = client_of(make_viewer())
        text = viewer.get("/docs/readme/").content.decode()
        picture = re.search(r'<img src="([^"]+)"', text)
        assert picture is not None
        answer = viewer.get(picture[1])
        assert answer.headers["content-type"].startswith("image/")

    @pytest.mark.parametrize(
        "path", ["/docs/none/", "/docs/images/none.png", "/docs/images/..%2f..%2fREADME.md"]
    )
    def test_what_is_no_document_is_not_found(self, path: str) -> None:
        assert client_of(make_viewer()).get(path).status_code == 404

    def test_strangers_sign_in_first(self, client: Client) -> None:
        answer = client.get("/docs/nodes/")
        assert answer.status_code == 302
        assert answer.headers["location"].startswith("/sign-in/")
