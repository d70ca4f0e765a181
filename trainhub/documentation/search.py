"""Finds sections of documents by words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from trainhub.documentation.library import Document, documents
from trainhub.documentation.rendering import anchor_of

MAX_HITS = 30
MAX_WORDS = 10
SNIPPET = 180
# How much more a word in a heading counts than one in the text.
HEADING_WEIGHT = 20
# A long section must not come first for repeating a word.
MAX_MENTIONS = 5
_HEADING = re.compile(r"^(#{1,4}) +(.+)$")
_MARKS = re.compile(r"\[([^\]]+)\]\([^)]*\)|[`*|#]")


@dataclass(frozen=True)
class DocumentSection:
    document: Document
    heading: str
    text: str

    @property
    def anchor(self) -> str:
        return anchor_of(self.heading)


@dataclass(frozen=True)
class SectionHit:
    section: DocumentSection
    snippet: str


def find(query: str) -> list[SectionHit]:
    """Returns the sections that contain every word, the best first."""
    words = query.lower().split()[:MAX_WORDS]
    if not words:
        return []
    scored = [(score, section) for section in _sections() if (score := _score(section, words))]
    scored.sort(key=lambda item: -item[0])
    return [SectionHit(section, _snippet(section.text, words)) for _, section in scored[:MAX_HITS]]


@cache
def _sections() -> tuple[DocumentSection, ...]:
    return tuple(section for document in documents().values() for section in _split(document))


def _split(document: Document) -> Iterator[DocumentSection]:
    heading, lines, is_code = document.title, list[str](), False
    for line in document.text.splitlines():
        # A comment in a program looks like a heading.
        is_code ^= line.startswith("```")
        match = None if is_code else _HEADING.match(line)
        if match:
            yield DocumentSection(document, heading, "\n".join(lines))
            heading, lines = match[2].replace("`", ""), []
        else:
            lines.append(line)
    yield DocumentSection(document, heading, "\n".join(lines))


def _score(section: DocumentSection, words: list[str]) -> int:
    heading, text = f"{section.document.title} {section.heading}".lower(), section.text.lower()
    if not text.strip() or any(word not in heading and word not in text for word in words):
        return 0
    return sum(
        HEADING_WEIGHT * _count(word, heading) + min(_count(word, text), MAX_MENTIONS) for word in words
    )


def _count(word: str, text: str) -> int:
    """Returns how often a word of the text begins with `word`: "a" is in nearly every other word."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}", text))


def _snippet(text: str, words: list[str]) -> str:
    """Returns the part of the text around the first word, without Markdown's marks."""
    flat = " ".join(_MARKS.sub(lambda mark: mark[1] or "", text).split())
    at = min((place for word in words if (place := flat.lower().find(word)) >= 0), default=0)
    start = max(0, at - SNIPPET // 3)
    start = flat.rfind(" ", 0, start) + 1
    end = len(flat) if len(flat) <= start + SNIPPET else flat.rfind(" ", start, start + SNIPPET)
    return f"{'… ' if start else ''}{flat[start:end]}{' …' if end < len(flat) else ''}"
