"""The curated environments: sets of packages that everybody may use, described by the files in
`curated_sets/`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainhub_launch.order import EnvironmentSpec

FOLDER = Path(__file__).parent / "curated_sets"
# The Python of the locks. A hub whose nodes have another one locks the sets for that.
LOCK_PYTHON = "3.11"
ONNX = "TrainHub-ONNX-1.23"


@dataclass(frozen=True)
class Install:
    """What pip downloads for an environment on a node that has nothing: packages, and bytes of wheels."""

    packages: int
    download_bytes: int


@dataclass(frozen=True)
class CuratedSet:
    """A curated environment. `position`: its place in lists. `deprecated`: a sentence why it should no longer
    be used, "" if it may; `successor`: the name of the one to use instead, or "". `lock`: every package with
    version and hash for LOCK_PYTHON on Linux (x86-64), "" if a package has no wheel."""

    spec: EnvironmentSpec
    install: Install
    position: int
    deprecated: str = ""
    successor: str = ""
    lock: str = ""


def _read(path: Path) -> CuratedSet:
    """Returns the set that the file describes. Raises KeyError or TypeError for a file that lacks or adds a
    field."""
    data: dict[str, Any] = tomllib.loads(path.read_text())
    requirements = tuple(data.pop("requirements"))
    spec = EnvironmentSpec(data.pop("name"), data.pop("version"), "venv", requirements=requirements)
    lock = path.with_suffix(".lock")
    text = lock.read_text() if lock.exists() else ""
    return CuratedSet(spec, Install(**data.pop("install")), **data, lock=text)


SETS = tuple(sorted((_read(path) for path in FOLDER.glob("*.toml")), key=lambda item: item.position))
CURATED: tuple[EnvironmentSpec, ...] = tuple(item.spec for item in SETS)
BY_NAME = {item.spec.name: item for item in SETS}
INSTALLS = {item.spec.name: item.install for item in SETS}

# Package -> what the node needs for it besides pip.
_NEEDS = {
    "deepspeed": (
        "Needs Open MPI on the node, and g++ to compile DeepSpeed's operations when they are first used."
    ),
    "horovod": (
        "Needs Open MPI on the node. One node with cmake, g++ and Open MPI's headers builds Horovod from "
        "source, once for all."
    ),
}
# Packages that a node has to build first.
_PREPARED = ("horovod",)


def preparation(name: str) -> str:
    """Returns a sentence about what a node needs before this curated environment can be installed anywhere;
    "" for all that consist of wheels."""
    requirements = next((item.requirements for item in CURATED if item.name == name), ())
    packages = {requirement.partition("==")[0] for requirement in requirements}
    return " ".join(_NEEDS[package] for package in _PREPARED if package in packages)


def curated_lock(name: str) -> str:
    """Returns the lock of a curated environment, as it was when it was made; "" if there is none."""
    item = BY_NAME.get(name)
    return item.lock if item is not None else ""


def succession_notice(name: str) -> str:
    """Returns a sentence about a curated environment that is deprecated or has a successor, with what to do;
    "" for all others."""
    item = BY_NAME.get(name)
    if item is None or not (item.deprecated or item.successor):
        return ""
    remedy = f"choose {item.successor or 'another environment'} for new runs"
    if item.deprecated:
        return f"{name} is deprecated: {item.deprecated.rstrip('.')}; {remedy}."
    return f"{name} has a newer successor: {remedy}."


def describe(environment: EnvironmentSpec) -> str:
    """Returns a sentence about the packages of a curated environment and what the node needs for it."""
    return " ".join([f"Packages: {', '.join(environment.requirements)}.", *needs_of(environment)])


def needs_of(environment: EnvironmentSpec) -> list[str]:
    """Returns a sentence for each thing that the environment needs on the node besides pip."""
    packages = {requirement.partition("==")[0] for requirement in environment.requirements}
    return [sentence for package, sentence in _NEEDS.items() if package in packages]


def matching(text: str) -> list[EnvironmentSpec]:
    """Returns the curated environments in whose name or packages each word of the text begins a word, so that
    `run` does not find `onnxruntime`."""
    return [item for item in CURATED if matches(text, item.name, *item.requirements)]


def matches(text: str, *words: str) -> bool:
    """Returns whether each word of the text begins a word of `words`."""
    patterns = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in text.lower().split()]
    content = " ".join(words).lower()
    return all(pattern.search(content) for pattern in patterns)
