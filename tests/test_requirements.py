"""requirements.txt names everything that the hub and a node import."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from tests.test_architecture import PACKAGES, PROJECT, imported, modules, shown

BESIDE = ("simulator",)
"""Ours, and on no floor."""
AS_A_JOB = PROJECT / "registry" / "exporting" / "script"
"""Runs on a node in a run's own environment, and is never imported here."""
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    """The packages of requirements.txt, and what these bring along without being asked for an extra."""
    lines = [line for line in (PROJECT / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    found: set[str] = set()
    waiting = [match.group() for line in lines if (match := NAME.match(line))]
    while waiting:
        name = normal(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            continue
        waiting += [match.group() for line in needed if "extra ==" not in line and (match := NAME.match(line))]
    return found


def test_every_import_of_the_hub_and_the_node_is_declared() -> None:
    known, distributions = declared(), packages_distributions()
    missing = []
    for path in modules(*PACKAGES):
        if path.is_relative_to(AS_A_JOB):
            continue
        package = path.relative_to(PROJECT).parts[0]
        for line, name in imported(ast.parse(path.read_text()), package):
            if name in sys.stdlib_module_names or name in (*PACKAGES, *BESIDE, path.stem):  # a sitecustomize chains to the next
                continue
            if not {normal(item) for item in distributions.get(name, [name])} & known:
                missing.append(f"{shown(path)}:{line} imports {name}")
    assert not missing, "\n".join(missing)
