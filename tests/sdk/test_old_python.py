"""What is installed on people's machines starts with Python 3.8, which the tests themselves need not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT

PACKAGES = ("trainhub_sdk", "trainhub_cli", "trainhub_azureml")
# Python 3.9 made these usable with `[…]`. In annotations, which nothing evaluates, they are at any version.
BUILTINS = {"dict", "frozenset", "list", "set", "tuple", "type"}


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the node and what is below it, without annotations and what only type checkers read."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield from evaluated(item)


def too_new(source: str) -> list[str]:
    """Returns the lines with generic types that Python 3.8 refuses when it executes them."""
    tree = ast.parse(source)
    classes = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"
        for alias in node.names
    }
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in evaluated(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in classes | BUILTINS
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_uses_generic_types_that_python_3_8_lacks(package: str) -> None:
    wrong = {
        str(path.relative_to(PROJECT)): lines
        for path in sorted(Path(PROJECT, package).rglob("*.py"))
        if (lines := too_new(path.read_text()))
    }
    assert wrong == {}


def test_only_what_is_executed_counts() -> None:
    source = "from collections.abc import Callable\ndef f(x: list[int]) -> Callable[[], None]: ...\n"
    assert too_new(source) == []
    assert too_new(f"{source}Made = Callable[[], None]\n") == ["3: Callable[[], None]"]
