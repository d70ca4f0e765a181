"""The Markdown documents of the project, and where each is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainhub.installation import BASE_DIR

DOCS = BASE_DIR / "docs"
IMAGES = DOCS / "images"
README = BASE_DIR / "README.md"
# The section of the README that lists all documents with the question that each answers.
CONTENTS = "\n## Documentation\n"
_GROUP = re.compile(r"\| \*\*(.+?)\*\* \|")
_ROW = re.compile(r"\| \[(.+?)\]\((.+?)\) \| (.+?) \|")


@dataclass(frozen=True)
class Document:
    """`slug`: the last part of its address. `text`: Markdown."""

    slug: str
    path: Path
    title: str
    text: str


@dataclass(frozen=True)
class ContentsEntry:
    """A line of the contents: a document under the name that the README gives it."""

    name: str
    question: str
    slug: str


@cache
def documents() -> Mapping[str, Document]:
    """Returns all documents by slug. They belong to the installation and do not change while it runs."""
    return {slug: _read(slug, path) for slug, path in _paths()}


@cache
def slugs_by_path() -> Mapping[Path, str]:
    return {document.path: document.slug for document in documents().values()}


@cache
def contents() -> tuple[tuple[str, tuple[ContentsEntry, ...]], ...]:
    """Returns the groups of the README's list, each with its title."""
    groups: list[tuple[str, list[ContentsEntry]]] = []
    for line in README.read_text().partition(CONTENTS)[2].splitlines():
        group, row = _GROUP.match(line), _ROW.match(line)
        if group:
            groups.append((group[1], []))
        elif row and groups:
            slug = slugs_by_path().get((BASE_DIR / row[2]).resolve(), "")
            groups[-1][1].append(ContentsEntry(row[1], row[3], slug))
    return tuple((title, tuple(entry for entry in entries if entry.slug)) for title, entries in groups)


def _paths() -> Iterator[tuple[str, Path]]:
    for path in sorted(BASE_DIR.glob("*.md")):
        yield path.stem.lower().replace("_", "-"), path
    for path in sorted(DOCS.glob("*.md")):
        yield path.stem, path
    for path in sorted((DOCS / "adr").glob("*.md")):
        yield f"decision-{path.stem}", path
    yield "simulated-gpus", BASE_DIR / "simulator" / "README.md"


def _read(slug: str, path: Path) -> Document:
    text = path.read_text()
    title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), slug)
    return Document(slug, path, title, text)
