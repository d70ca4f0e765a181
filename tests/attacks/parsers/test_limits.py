"""Code and docs/limits.md name the same limits; that each is enforced is tested beside what it bounds."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import FLOORS, modules

PROJECT = Path(__file__).resolve().parents[3]
PAGE = PROJECT / "docs" / "limits.md"
UNITS = {"KiB": 2**10, "MiB": 2**20, "": 1}
VALUE = re.compile(r"([\d,]+)(?: (KiB|MiB))?(?: \(`\w+`\))?")


def rows() -> Iterator[tuple[str, str]]:
    """Value and name in the code of each limit."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and cells[3].startswith("`"):
            yield cells[1], cells[3].rstrip(" |").strip("`")


def value_of(text: str) -> int:
    found = VALUE.fullmatch(text)
    assert found is not None, f"{text!r} is no number with a unit"
    return int(found[1].replace(",", "")) * UNITS[found[2] or ""]


@pytest.mark.parametrize(("text", "name"), list(rows()), ids=lambda item: item)
def test_the_page_tells_the_value_that_the_code_has(text: str, name: str) -> None:
    module, _, constant = name.rpartition(".")
    assert getattr(importlib.import_module(module), constant) == value_of(text)


def test_the_page_lists_the_limits_of_every_area() -> None:
    assert len(list(rows())) > 40


def test_every_limit_is_used_where_it_is_defined_or_elsewhere() -> None:
    """A limit that is only defined bounds nothing."""
    uses: Counter[str] = Counter()
    for package in FLOORS:
        for path in modules(package):
            uses.update(re.findall(r"\w+", path.read_text()))
    unused = [name for _, name in rows() if uses[name.rpartition(".")[2]] < 2]
    assert unused in ([], ["trainhub.settings.DATA_UPLOAD_MAX_MEMORY_SIZE"])
