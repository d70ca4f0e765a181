"""How packages are built that need more than their own build backend knows, from the files in `recipes/`."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Program:
    """A program that the node needs for the build, and the Debian package that has it."""

    name: str
    debian: str


@dataclass(frozen=True)
class Framework:
    """Variables that depend on whether the environment has one of `packages`, and the Python code that must
    then run without an error in an environment with the built wheel."""

    packages: tuple[str, ...]
    variables: Mapping[str, str]
    variables_without: Mapping[str, str]
    check: str


@dataclass(frozen=True)
class CompilerFlags:
    """Flags that the C++ compiler gets after its own arguments, if these match one of the patterns in
    `sources` and the environment has such a version of `package`."""

    package: str
    versions: SpecifierSet
    sources: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """`digest`: the SHA-256 of the file, so that a changed recipe makes another build."""

    project: str
    versions: SpecifierSet
    digest: str
    build_requirements: tuple[str, ...]
    dependencies: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[Program, ...] = ()
    frameworks: tuple[Framework, ...] = ()
    compiler_flags: tuple[CompilerFlags, ...] = ()

    def present_frameworks(self, locked: Mapping[str, str]) -> tuple[Framework, ...]:
        """Returns those of which a package is in the lock, which is given as name -> version."""
        return tuple(item for item in self.frameworks if any(name in locked for name in item.packages))

    def build_variables(self, locked: Mapping[str, str]) -> dict[str, str]:
        variables = dict(self.variables)
        for framework in self.frameworks:
            is_present = framework in self.present_frameworks(locked)
            variables |= framework.variables if is_present else framework.variables_without
        return variables

    def flags_for(self, locked: Mapping[str, str]) -> tuple[CompilerFlags, ...]:
        return tuple(
            item
            for item in self.compiler_flags
            if item.package in locked and item.versions.contains(locked[item.package], prereleases=True)
        )


def recipes_of(project: str) -> tuple[Recipe, ...]:
    """Returns the recipes of the project, which is given by its normalised name."""
    return tuple(recipe for recipe in _recipes() if recipe.project == project)


def recipe_for(project: str, version: str) -> Recipe | None:
    return next(
        (item for item in recipes_of(project) if item.versions.contains(version, prereleases=True)), None
    )


@cache
def _recipes() -> tuple[Recipe, ...]:
    return tuple(read_recipe(path.read_text()) for path in sorted(FOLDER.glob("*.toml")))


def read_recipe(text: str) -> Recipe:
    """Raises KeyError, TypeError or ValueError for a text that lacks or adds something."""
    data = {name.replace("-", "_"): value for name, value in tomllib.loads(text).items()}
    return Recipe(
        project=data.pop("project"),
        versions=SpecifierSet(data.pop("versions")),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        build_requirements=tuple(data.pop("build_requirements")),
        dependencies=tuple(data.pop("dependencies")),
        variables=data.pop("variables", {}),
        programs=tuple(Program(**item) for item in data.pop("programs", ())),
        frameworks=tuple(_framework(item) for item in data.pop("frameworks", ())),
        compiler_flags=tuple(_flags(item) for item in data.pop("compiler_flags", ())),
        **data,
    )


def _framework(item: Mapping[str, Any]) -> Framework:
    return Framework(
        tuple(item["packages"]), item["variables"], item.get("variables-without", {}), item["check"]
    )


def _flags(item: Mapping[str, Any]) -> CompilerFlags:
    return CompilerFlags(
        item["package"], SpecifierSet(item["versions"]), tuple(item["sources"]), tuple(item["flags"])
    )
