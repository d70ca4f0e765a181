"""What this package offers, read from its own sources, so that it cannot say anything else than what is
there."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MODULES = (
    "authentication",
    "compute",
    "conda_dependencies",
    "data/consumption",
    "data/data_reference",
    "data/dataset",
    "data/datasets",
    "data/datastore",
    "data/mount_context",
    "distributions",
    "environment",
    "estimators/estimator",
    "estimators/frameworks",
    "experiment",
    "hyperdrive/hyperdrive_run",
    "hyperdrive/parameter_expressions",
    "hyperdrive/policies",
    "hyperdrive/samplers",
    "hyperdrive/search_config",
    "job/offline_run",
    "job/run_logging",
    "models/model",
    "models/model_changes",
    "run",
    "run_configuration",
    "run_files",
    "run_results",
    "widgets",
    "workspace",
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ValueType(NamedTuple):
    """`item`: of what a value consists if it is a list, a dict or an iterator."""

    name: str
    is_item: bool = False


class Catalog(NamedTuple):
    """`members`: for each class its attributes, with the type of each if that is clear; `places`: for each
    module of `azureml` the classes and functions that it offers, by their own names."""

    members: Mapping[str, Mapping[str, ValueType | None]]
    places: Mapping[str, Mapping[str, str]]


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    classes = {}
    for module in _MODULES:
        with open(os.path.join(_PACKAGE, f"{module}.py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        classes.update({node.name: node for node in tree.body if isinstance(node, ast.ClassDef)})
    members = {name: dict(_members(node, classes)) for name, node in classes.items()}
    for name, base in _bases(classes):
        # What is known as the base may be any of its kinds.
        members[base] = {**members[name], **members[base]}
    return Catalog(members, dict(_places()))


def _bases(classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, str]]:
    for name, node in classes.items():
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                yield name, base.id


def _members(
    node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]
) -> Iterator[tuple[str, ValueType | None]]:
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _members(classes[base.id], classes)
    for statement in ast.walk(node):
        if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
            yield statement.name, _type_of(statement.returns, classes)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                own = target.elts if isinstance(target, ast.Tuple) else [target]
                for part in own:
                    if isinstance(part, ast.Attribute) and not part.attr.startswith("_"):
                        yield part.attr, _constructed(statement.value, classes)
                    elif isinstance(part, ast.Name) and statement in node.body:
                        yield part.id, _constructed(statement.value, classes)


def _constructed(value: ast.expr | None, classes: Mapping[str, ast.ClassDef]) -> ValueType | None:
    named = value.func if isinstance(value, ast.Call) else value
    return ValueType(named.id) if isinstance(named, ast.Name) and named.id in classes else None


def _type_of(annotation: ast.expr | None, classes: Mapping[str, ast.ClassDef]) -> ValueType | None:
    if annotation is None:
        return None
    text = ast.dump(annotation)
    named = [word for word in _WORD.findall(text) if word in classes]
    if not named:
        return None
    is_item = any(word in text for word in ("'Iterator'", "'Mapping'", "'list'", "'Sequence'"))
    return ValueType(named[-1], is_item)


def _places() -> Iterator[tuple[str, Mapping[str, str]]]:
    root = os.path.join(_PACKAGE, "names")
    for parent, _folders, files in os.walk(os.path.join(root, "azureml")):
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(parent, file)
                module = os.path.relpath(path, root)[:-3].replace(os.sep, ".")
                module = module[: -len(".__init__")] if module.endswith(".__init__") else module
                with open(path, encoding="utf-8") as stream:
                    yield module, dict(_names(ast.parse(stream.read())))


def _names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant):
                    yield str(key.value), str(key.value)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.name
