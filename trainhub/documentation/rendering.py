"""Turns documents into HTML: headings get anchors, and links lead to the pages of other documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

from trainhub.documentation.library import DOCS, IMAGES, Document, documents, slugs_by_path
from trainhub.installation import BASE_DIR

MAX_LEVEL = 4
_DROPPED = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Page:
    """`headings`: those of the second level, for a list beside the text."""

    html: SafeString
    headings: tuple[Heading, ...]


def anchor_of(heading: str) -> str:
    """Returns the anchor that GitHub gives a heading, so that the same links work there and here."""
    return _DROPPED.sub("", heading.strip().lower()).replace(" ", "-")


@cache
def render(slug: str) -> Page:
    document = documents()[slug]
    tokens = list(_without_empty_heads(_markdown.parse(document.text)))
    for token in tokens:
        for child in token.children or []:
            _lead_home(child, document)
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    # The documents are part of TrainHub; Markdown that contains HTML shows it as text.
    return Page(mark_safe(html), tuple(_headings(tokens)))  # noqa: S308


def _without_empty_heads(tokens: list[Token]) -> Iterator[Token]:
    """Leaves out the heads of tables that have no text in them: Markdown has no tables without a head."""
    rest = iter(tokens)
    for token in rest:
        if token.type != "thead_open":
            yield token
            continue
        head = [token, *takewhile(lambda inner: inner.type != "thead_close", rest)]
        if any(inner.type == "inline" and inner.content for inner in head):
            yield from head
            yield Token("thead_close", "thead", -1)


def _headings(tokens: list[Token]) -> list[Heading]:
    return [
        Heading(2, content.content.replace("`", ""), str(token.attrGet("id") or ""))
        for token, content in pairwise(tokens)
        if token.type == "heading_open" and token.tag == "h2"
    ]


def _lead_home(token: Token, document: Document) -> None:
    """Changes the address of a link or an image that is relative to the document's file."""
    name = {"link_open": "href", "image": "src"}.get(token.type, "")
    target = urlsplit(str(token.attrGet(name) or "")) if name else None
    if target is None or target.scheme or not target.path:
        return
    path = (document.path.parent / target.path).resolve()
    if token.type == "image":
        token.attrSet(
            "src", reverse("documentation-image", args=[path.name]) if path.parent == IMAGES else ""
        )
        token.attrSet("loading", "lazy")
        return
    slug = slugs_by_path().get(path)
    if slug is not None:
        fragment = f"#{target.fragment}" if target.fragment else ""
        token.attrSet("href", reverse("document", args=[slug]) + fragment)
    elif path == DOCS / "adr":
        token.attrSet("href", reverse("documentation"))
    else:
        # A file that is no document is in the folder of the installation.
        token.attrs = {"title": f"In the folder of TrainHub: {path.relative_to(BASE_DIR)}"}


_markdown = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .use(anchors_plugin, max_level=MAX_LEVEL, slug_func=anchor_of)
)
