"""Every browser module parses, imports only what exists, and is used by a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hub import PROJECT
from tests.js.node import SCRIPTS, run_node

MODULES = sorted(SCRIPTS.rglob("*.js"))
CHECKER = PROJECT / "tests" / "js" / "check_modules.mjs"
PAGE_PACKAGES = ("clusters", "environments", "jobs", "registry", "tracking", "trainhub", "workspaces")
MAX_COLUMNS = 120
REFERENCE = re.compile(r"""["'](js/[\w/-]+\.js)["']""")


def check(paths: list[Path]) -> tuple[list[str], dict[str, list[str]]]:
    """The faults in these modules, and, where there are none, which module imports which."""
    result = run_node(CHECKER, *paths)
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    return report["faults"], report["imports"]


def pages() -> list[Path]:
    """The templates and Python files that may name a script."""
    python = [path for package in PAGE_PACKAGES for path in (PROJECT / package).rglob("*.py")]
    return [*(PROJECT / "templates").rglob("*.html"), *python]


def entry_points() -> set[Path]:
    """The scripts that pages load by themselves."""
    return {SCRIPTS.parent / name for path in pages() for name in REFERENCE.findall(path.read_text())}


def on_first_use(path: Path) -> list[str]:
    """The modules that a module loads when they are needed."""
    names = re.findall(r'\bimport\("(\.[^"]+)"\)', path.read_text())
    return [str((path.parent / name).resolve()) for name in names]


def test_every_module_parses_and_imports_only_what_exists() -> None:
    assert len(MODULES) > 50, "the modules have moved: this test reads none"
    faults, _ = check(MODULES)
    assert not faults, "\n".join(faults)


def test_pages_load_only_scripts_that_exist() -> None:
    assert not [path for path in entry_points() if not path.is_file()]


def test_every_module_is_used_by_a_page() -> None:
    _, imports = check(MODULES)
    used: set[str] = set()
    waiting = [str(path) for path in entry_points()]
    while waiting:
        path = waiting.pop()
        if path not in used:
            used.add(path)
            waiting += [*imports[path], *on_first_use(Path(path))]
    unused = sorted({str(path) for path in MODULES} - used)
    assert not unused, "no page loads these"


def test_no_line_is_too_long() -> None:
    long = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("const answer = ;", "Unexpected token"),
        ('import { missing } from "./other.js";', "does not provide an export named 'missing'"),
        ('import other from "./other.js";', "does not provide an export named 'default'"),
        ('import { present } from "./nowhere.js";', "no such file"),
        ('import { present } from "other";', "not a relative address"),
        ('export { missing } from "./other.js";', "does not provide an export named 'missing'"),
    ],
)
def test_the_check_finds_each_kind_of_fault(tmp_path: Path, source: str, fault: str) -> None:
    (tmp_path / "other.js").write_text("export const present = 1;\n")
    (tmp_path / "module.js").write_text(source)
    faults, _ = check([tmp_path / "module.js"])
    assert len(faults) == 1
    assert fault in faults[0]


def test_the_check_accepts_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "other.js").write_text("export const present = 1;\n")
    (tmp_path / "module.js").write_text(
        'import { present } from "./other.js";\nexport const next = present + 1;\n'
    )
    assert check([tmp_path / "module.js"])[0] == []
