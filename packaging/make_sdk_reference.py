"""Writes docs/sdk-reference.md from the docstrings of the SDK:
`.venv/bin/python packaging/make_sdk_reference.py`. A test fails when they differ, and for a public name
without a docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "sdk-reference.md"
HEAD = """# Python SDK: reference

This document lists every class of the package `trainhub_sdk` with its methods and fields; it is for people
who use the [SDK](sdk.md) in scripts and look up a name. It is written from the docstrings by
`packaging/make_sdk_reference.py`.
"""
# Section: the modules whose public classes it has.
SECTIONS = {
    "A hub": ("client",),
    "What a run is to do": ("spec", "spec_formats"),
    "Runs": ("run", "log_reader"),
    "Models": ("models",),
    "Errors": ("errors",),
    "What the hub sends": (
        "records/runs",
        "records/registry",
        "records/machines",
        "records/environments",
        "records/data",
        "records/people",
    ),
}


# The package makes these itself, so nobody needs to know with which arguments.
_ERRORS = ("Error", "Refused", "Unreachable")


class Undocumented(Exception):
    """A public name has no docstring."""


def reference() -> str:
    """Returns the text of the document. Raises Undocumented."""
    return HEAD + "".join(_section(title, modules) for title, modules in SECTIONS.items())


def _section(title: str, modules: tuple[str, ...]) -> str:
    lines = [f"\n## {title}\n"]
    for module in modules:
        path = ROOT / "trainhub_sdk" / f"{module}.py"
        place = f"trainhub_sdk.{module.replace('/', '.')}"
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                lines += _class(node, place)
    return "\n".join(lines)


def _class(node: ast.ClassDef, place: str) -> Iterator[str]:
    is_record = place.startswith("trainhub_sdk.records.")
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"### {node.name}\n"
    yield f"`from {place} import {node.name}`" + ("" if is_record or not bases else f"; a `{bases}`") + "\n"
    if not is_record:
        yield f"{_text(node, node.name)}\n"
    members = [*_fields(node, is_record=is_record), *_methods(node)]
    if members:
        yield "\n".join(members) + "\n"


def _fields(node: ast.ClassDef, *, is_record: bool) -> Iterator[str]:
    """Yields a line for each field. That of a record is followed by its docstring."""
    for field, following in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        default = "" if is_record or field.value is None else f" = {_default(field.value)}"
        line = f"- `{field.target.id}: {ast.unparse(field.annotation)}{default}`"
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            line += f": {' '.join(str(following.value.value).split())}"
        yield line


def _methods(node: ast.ClassDef) -> Iterator[str]:
    is_error = any(ast.unparse(base).endswith(_ERRORS) for base in node.bases)
    for method in node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        decorators = [ast.unparse(one) for one in method.decorator_list]
        if method.name == "__init__" and not is_error:
            # The docstring of the class explains the arguments.
            yield f"- `{node.name}({_arguments(method)})`"
        if method.name.startswith("_") or (method.name == "of" and "classmethod" in decorators):
            continue  # `of` is how the package itself makes one
        name = f"{node.name}.{method.name}" if "classmethod" in decorators else method.name
        call = name if "property" in decorators else f"{name}({_arguments(method)})"
        returns = f" -> {ast.unparse(method.returns)}" if method.returns else ""
        yield f"- `{call}{returns}`: {_text(method, f'{node.name}.{method.name}')}"


def _arguments(method: ast.FunctionDef) -> str:
    """Returns the arguments of a call, as ruff would format them."""
    text = re.sub(r"(?<! )=(?! )", " = ", ast.unparse(method.args)).replace("'", '"')
    return text.partition(", ")[2] if text.startswith(("self", "cls")) else text


def _default(value: ast.expr) -> str:
    """Returns a default as a caller would write it."""
    text = ast.unparse(value).replace("'", '"')
    return {"field(default_factory=dict)": "{}"}.get(text, text)


def _text(node: ast.ClassDef | ast.FunctionDef, name: str) -> str:
    docstring = ast.get_docstring(node)
    if not docstring:
        raise Undocumented(f"{name} has no docstring")
    return "\n\n".join(" ".join(part.split()) for part in docstring.split("\n\n"))


if __name__ == "__main__":
    FILE.write_text(reference())
