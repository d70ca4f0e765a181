"""The documents say what the code does: settings, states, reasons, links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.states import RunState

PROJECT = Path(__file__).resolve().parent.parent
CONFIGURATION = PROJECT / "docs" / "configuration.md"
DOCUMENTS = [
    *sorted(PROJECT.glob("*.md")),
    *(path for name in ("docs", "examples") for path in sorted((PROJECT / name).rglob("*.md"))),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
MANY_STATES = 4
"""A document that names this many run states describes the life of a run, and must know them all."""


def section(title: str) -> str:
    return CONFIGURATION.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def read_by_the_hub() -> set[str]:
    text = "".join(path.read_text() for path in (PROJECT / "trainhub").rglob("*.py"))
    return set(re.findall(r"\benv\.\w+\(\s*\"([A-Z_]+)\"", text))


def read_by_a_node() -> set[str]:
    modules = (
        "settings.py",
        "run_account.py",
        "data/peers/port_setting.py",
        "data/shares/allowed_servers.py",
        "gpu/gpu_setting.py",
        "upgrade/installation.py",
    )
    text = "".join((PROJECT / "trainhub_node" / name).read_text() for name in modules)
    names = set(re.findall(r"\bTRAINHUB_[A-Z_]*[A-Z]\b", text))
    return {
        name
        for name in names
        if name.removesuffix("_FILE") == name or name.removesuffix("_FILE") not in names
    }


def test_every_setting_of_the_hub_is_documented_and_none_besides() -> None:
    assert set(ROW.findall(section("The hub"))) == read_by_the_hub()


def test_every_setting_of_a_node_is_documented_and_none_besides() -> None:
    assert set(ROW.findall(section("A node"))) == read_by_a_node()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_link_leads_to_a_file(document: Path) -> None:
    targets = [target.split("#")[0] for target in LINK.findall(document.read_text()) if "://" not in target]
    missing = [target for target in targets if target and not (document.parent / target).exists()]
    assert not missing


def test_every_test_that_the_threat_model_names_exists() -> None:
    """A promise whose test is gone is no promise."""
    text = (PROJECT / "THREAT_MODEL.md").read_text()
    named = {name for name in re.findall(r"`([a-z_/]+(?:\.py|\.txt|/))`", text) if "/" in name}
    assert len(named) > 50
    missing = [
        name for name in named if not any((PROJECT / root / name).exists() for root in ("", "tests/attacks"))
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_life_of_a_run_is_told_with_all_its_states(document: Path) -> None:
    told = {state for state in RunState if re.search(rf"\b{state.value}\b", document.read_text())}
    assert len(told) < MANY_STATES or told == set(RunState)
