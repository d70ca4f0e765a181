"""The table of docs/isolation.md: what a run can do in each mode."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "isolation.md"
MODES = ("range", "account", "namespaces", "agent")
# Not a column: what holds for one account holds for that of a person, and for two runs of the same one.
PERSON = "person"
# The same is true of runs in images: what holds without a container, holds in one of each engine.
PODMAN, DOCKER, ROOTLESS_PODMAN = ENGINES = ("podman", "docker", "rootless podman")
COLUMNS = {PERSON: "account", PODMAN: "range", DOCKER: "range", ROOTLESS_PODMAN: "namespaces"}
# In these the agent is not root.
ROOTLESS = ("namespaces", "agent", ROOTLESS_PODMAN)
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
