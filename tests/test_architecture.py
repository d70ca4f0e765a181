"""The floors of ARCHITECTURE.md, and the sizes and names that keep modules readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.support.house_figures import STANDALONE

PROJECT = Path(__file__).resolve().parent.parent
FLOORS = {
    "trainhub_launch": 0,
    "trainhub_node": 1,
    "live": 1,
    "workspaces": 2,
    "clusters": 3,
    "environments": 4,
    "datastores": 4,
    "jobs": 5,
    "tracking": 6,
    "registry": 7,
    "trainhub": 8,
}
PACKAGES = [name for name in FLOORS if (PROJECT / name).is_dir()]
CLIENT_FLOORS = {"trainhub_sdk": 0, "trainhub_azureml": 1, "trainhub_cli": 2}
"""What people install on their own machines: it meets the hub in its API alone."""
CLIENT_PACKAGES = list(CLIENT_FLOORS)
CLIENT_LIBRARIES = {
    # Only where they are there: to return a table, to read YAML, to exchange values between ranks.
    "trainhub_sdk": {"pandas", "yaml", "torch"},
    "trainhub_azureml": {"IPython", "pandas"},  # only in a notebook, and for tables
    "trainhub_cli": {"click", "rich"},
}
FORBIDDEN_NAMES = {
    "services",
    "service",
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "manager",
    "managers",
}
LONGEST_FILE = 300
MAX_MODULES = 20
"""Modules of a folder, without its `__init__.py`."""
LONGEST_FUNCTION = 50
MUTUAL = {
    # The supervisor prepares the environment, and pip runs under the supervisor's wrapper like a rank.
    "trainhub_node": frozenset({frozenset({"environments", "supervisor"})}),
}
"""Sub-packages that may import each other, by package."""
LIGHT = ("trainhub.up.command", "trainhub_node.supervisor.rank")
HEAVY = {"django", "httpx", "celery", "starlette", "rest_framework"}


def modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        for path in sorted((PROJECT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def imported(tree: ast.AST, own: str) -> Iterator[tuple[int, str]]:
    """Line and top-level package of every import; relative ones are `own`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, own if node.level else (node.module or "").split(".")[0]


def relative(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_floor_imports_only_lower_floors(package: str) -> None:
    wrong = []
    for path in modules(package):
        for line, name in imported(ast.parse(path.read_text()), package):
            if name != package and name in FLOORS and FLOORS[name] >= FLOORS[package]:
                wrong.append(f"{relative(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_hub_and_the_node_meet_only_in_the_values_of_floor_0() -> None:
    wrong = []
    for path in modules(*PACKAGES):
        package = path.relative_to(PROJECT).parts[0]
        for line, name in imported(ast.parse(path.read_text()), package):
            into_node = name == "trainhub_node" and package != "trainhub_node"
            out_of_node = (
                package == "trainhub_node"
                and name in FLOORS
                and name not in ("trainhub_node", "trainhub_launch")
            )
            if into_node or out_of_node:
                wrong.append(f"{relative(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_simulated_gpus_come_into_the_demo_alone() -> None:
    """`simulator/` stands on no floor, like bench/: it may use none of ours, and only what starts the demo
    may use it."""
    ours = [(path, ast.parse(path.read_text())) for path in modules(*PACKAGES)]
    used = {relative(path) for path, tree in ours for _, name in imported(tree, "") if name == "simulator"}
    assert used <= {"trainhub/up/demo.py"}
    trees = [(path, ast.parse(path.read_text())) for path in modules("simulator")]
    assert [
        relative(path) for path, tree in trees for _, name in imported(tree, "simulator") if name in FLOORS
    ] == []


def test_floor_0_needs_only_the_standard_library() -> None:
    wrong = []
    for path in modules("trainhub_launch"):
        for line, name in imported(ast.parse(path.read_text()), "trainhub_launch"):
            if name != "trainhub_launch" and name not in sys.stdlib_module_names:
                wrong.append(f"{relative(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", CLIENT_PACKAGES)
def test_the_sdk_and_the_command_line_import_nothing_of_the_hub(package: str) -> None:
    allowed = {name for name, floor in CLIENT_FLOORS.items() if floor <= CLIENT_FLOORS[package]}
    allowed |= CLIENT_LIBRARIES[package] | set(sys.stdlib_module_names)
    wrong = [
        f"{relative(path)}:{line} imports {name}"
        for path in modules(package)
        for line, name in imported(ast.parse(path.read_text()), package)
        if name not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_of_the_hub_imports_the_sdk_or_the_command_line() -> None:
    wrong = [
        f"{relative(path)}:{line} imports {name}"
        for path in modules(*PACKAGES, "simulator")
        for line, name in imported(ast.parse(path.read_text()), "")
        if name in CLIENT_FLOORS
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_inside_a_function() -> None:
    """The SDK and the command line may: their start is measured in milliseconds."""
    wrong = []
    for path in modules(*PACKAGES):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
                wrong += [f"{relative(path)}:{node.lineno} in {function.name}" for node in inner]
    assert not wrong, "\n".join(wrong)


def subpackage_imports(package: str) -> set[tuple[str, str]]:
    """Which sub-package of `package` imports which other; modules beside the sub-packages are left out."""
    folders = {path.name for path in (PROJECT / package).iterdir() if (path / "__init__.py").exists()}
    pairs = set()
    for path in modules(package):
        own = path.relative_to(PROJECT / package).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                parts = [name.split(".") for name in names]
                pairs |= {(own, part[1]) for part in parts if part[0] == package and len(part) > 1}
    return {(own, other) for own, other in pairs if own != other and {own, other} <= folders}


@pytest.mark.parametrize("package", PACKAGES)
def test_subpackages_import_each_other_in_one_direction(package: str) -> None:
    pairs = subpackage_imports(package)
    mutual = {frozenset(pair) for pair in pairs if pair[::-1] in pairs}
    assert mutual <= MUTUAL.get(package, frozenset())


def test_template_tags_are_for_templates_alone() -> None:
    """What code needs as well stands in a module of its own, which the tags register."""
    wrong = [
        f"{relative(path)}:{node.lineno} imports {node.module}"
        for path in modules(*PACKAGES)
        if "templatetags" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and "templatetags" in (node.module or "").split(".")
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_are_named_for_what_they_do() -> None:
    wrong = [
        relative(path)
        for path in modules(*PACKAGES, *CLIENT_PACKAGES)
        if path.stem in FORBIDDEN_NAMES or path.parent.name in FORBIDDEN_NAMES
    ]
    assert not wrong, "\n".join(wrong)


def test_folders_stay_narrow() -> None:
    folders = Counter(
        path.parent
        for path in modules(*PACKAGES, *CLIENT_PACKAGES, "tests", "bench", "simulator")
        if path.name != "__init__.py"
    )
    wide = [f"{relative(folder)}: {count}" for folder, count in folders.items() if count > MAX_MODULES]
    assert not wide, "\n".join(wide)


def test_files_stay_short() -> None:
    sources = [
        *modules(*PACKAGES, *CLIENT_PACKAGES, "tests", "examples", "bench", "simulator"),
        *sorted((PROJECT / "simulator").glob("*.[ch]")),
    ]
    sources += sorted((PROJECT / "static" / "js").rglob("*.js"))
    sources += sorted((PROJECT / "templates").rglob("*.html"))
    long = [
        f"{relative(path)}: {lines}"
        for path in sources
        if (lines := len(path.read_text().splitlines())) > STANDALONE.get(relative(path), LONGEST_FILE)
    ]
    assert not long, "\n".join(long)


def test_functions_stay_short() -> None:
    long = []
    for path in modules(*PACKAGES, *CLIENT_PACKAGES, "tests", "simulator"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{relative(path)}:{node.lineno} {node.name}: {lines}")
    assert not long, "\n".join(long)


@pytest.mark.parametrize("module", LIGHT)
def test_what_stays_in_memory_for_long_stays_small(module: str) -> None:
    code = f"import sys, {module}; print(*set({sorted(HEAVY)!r}) & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
