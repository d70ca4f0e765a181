"""requirements.txt names everything that the hub and a node import."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
from packaging.requirements import Requirement

from tests.test_architecture import PACKAGES, PROJECT, imported, modules, relative

BESIDE = ("simulator",)
"""Ours, and on no floor."""
AS_A_JOB = PROJECT / "registry" / "exports" / "script"
"""Runs on a node in a run's own environment, and is never imported here."""
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    """The packages of requirements.txt, and what these bring along without being asked for an extra."""
    lines = [
        line
        for line in (PROJECT / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
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
        waiting += [
            match.group() for line in needed if "extra ==" not in line and (match := NAME.match(line))
        ]
    return found


def test_every_import_of_the_hub_and_the_node_is_declared() -> None:
    known, distributions = declared(), packages_distributions()
    missing = []
    for path in modules(*PACKAGES):
        if path.is_relative_to(AS_A_JOB):
            continue
        package = path.relative_to(PROJECT).parts[0]
        for line, name in imported(ast.parse(path.read_text()), package):
            if name in sys.stdlib_module_names or name in (
                *PACKAGES,
                *BESIDE,
                path.stem,
            ):  # a sitecustomize chains to the next
                continue
            if not {normal(item) for item in distributions.get(name, [name])} & known:
                missing.append(f"{relative(path)}:{line} imports {name}")
    assert not missing, "\n".join(missing)


LOCK = PROJECT / "requirements.lock"
LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
FAULTY = [
    ("Django", "5.2.8"),
    ("starlette", "0.49.0"),
    ("cryptography", "44.0.0"),
    ("cryptography", "46.0.4"),
    ("setuptools", "78.1.0"),
    ("python-multipart", "0.0.21"),
    ("orjson", "3.11.5"),
    ("h11", "0.15.0"),
    ("Werkzeug", "3.1.3"),
    ("sqlparse", "0.5.3"),
]
"""Versions with published faults: finding S26."""


def required() -> dict[str, Requirement]:
    lines = [
        line
        for line in (PROJECT / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    found = [Requirement(line) for line in lines]
    return {normal(item.name): item for item in found}


def test_the_lock_satisfies_every_requirement() -> None:
    locked = {normal(name): version for name, version in LOCKED.findall(LOCK.read_text())}
    missing = [
        str(item) for name, item in required().items() if not item.specifier.contains(locked.get(name, "0"))
    ]
    assert not missing, f"requirements.lock does not satisfy {missing}; run make lock"


def test_the_lock_names_exact_versions_with_hashes_and_no_place_to_fetch_them_from() -> None:
    text = LOCK.read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    assert len(entries) > len(required())
    assert [entry for entry in entries if not LOCKED.match(entry) or "--hash=sha256:" not in entry] == []
    assert not re.search(r"https?:|file:|--index|--find-links|--extra", text)


@pytest.mark.parametrize(("name", "version"), FAULTY)
def test_no_range_allows_a_version_with_a_known_fault(name: str, version: str) -> None:
    assert not required()[normal(name)].specifier.contains(version)
