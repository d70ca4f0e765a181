"""Templates stay readable: short lines. `make lint` checks their indentation."""

from __future__ import annotations

from pathlib import Path

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
MAX_COLUMNS = 160


def test_no_line_of_a_template_is_too_long() -> None:
    too_long = [
        f"{path.relative_to(TEMPLATES)}:{number} has {len(line)} columns"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > MAX_COLUMNS
    ]
    assert not too_long, f"at most {MAX_COLUMNS} columns:\n" + "\n".join(too_long)
