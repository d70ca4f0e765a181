"""The table of docs/isolation.md: what a run can do in each mode."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "isolation.md"
MODES = ("range", "account", "namespaces", "agent")
# Not a column: what holds for one account holds for that of a person, and for two runs of the same one.
# The same is true of runs in images, whose accounts are those of a range here.
PERSON, CONTAINER = "person", "container"
COLUMNS = {PERSON: "account", CONTAINER: "range"}
# In these the agent is not root.
ROOTLESS = ("namespaces", "agent")
CAN, CANNOT = "can", "cannot"


def documented() -> dict[tuple[str, str], str]:
    """(mode, attempt) -> `can` or `cannot`. The first table of the document whose head names the modes."""
    rows: dict[tuple[str, str], str] = {}
    lines = iter(DOCUMENT.read_text().splitlines())
    for line in lines:
        if line.startswith("| What a run tries |"):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows |= {(mode, name): cell for mode, cell in zip(MODES, cells, strict=True)}
    return rows
