"""Reads what a `pyproject.toml` asks for: dependencies, extras and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from environments.projects.source_text import PYPROJECT, parse_toml
from environments.requirement_list import RequirementList, read_requirements
from trainhub_launch.errors import SpecError

FIELD = "pyproject"
MAX_GROUP_DEPTH = 20
_UNUSABLE = {
    "path": "a folder of the project is not on the hub; put it into the run's source folder",
    "workspace": "members of a workspace are not on the hub; put their code into the run's source folder",
    "git": "remove it there, and name it in [project] dependencies: name @ git+https://host/owner/name@v1.0",
    "url": "an address of a file cannot be installed here; name a release of an index",
}
_POETRY = (
    "pyproject.toml has no [project] table; move the dependencies of [tool.poetry] there ([project] "
    "dependencies, as Poetry 2 writes them), or paste the output of `poetry export`"
)


@dataclass(frozen=True)
class Pyproject:
    """`requires_python`: "" for any. `extras`, `groups`: those of `[tool.trainhub]`, which are installed
    beside the dependencies. `requirements`: all of them. `names`: the normalised names of `[project]
    dependencies`."""

    requires_python: str
    extras: tuple[str, ...]
    groups: tuple[str, ...]
    requirements: RequirementList
    names: frozenset[str]


def read_pyproject(text: str, *, has_lock: bool = False) -> Pyproject:
    """Raises SpecError, which names the entry and the remedy. `has_lock`: uv.lock has the packages, so that
    the project may need none itself."""
    data = parse_toml(text, PYPROJECT)
    project = _table(data, "project")
    tool = _table(data, "tool")
    if not project:
        raise SpecError(
            FIELD, _POETRY if "poetry" in tool else "pyproject.toml has no [project] table; add it"
        )
    dynamic = project.get("dynamic", [])
    if isinstance(dynamic, list) and "dependencies" in dynamic:
        raise SpecError(
            FIELD,
            "project.dynamic has dependencies, which only a build of the project would show; list them in "
            "[project] dependencies",
        )
    dependencies = _strings(project.get("dependencies", []), "project.dependencies")
    settings = _table(tool, "trainhub")
    extras = _strings(settings.get("extras", []), "tool.trainhub.extras")
    groups = _strings(settings.get("groups", []), "tool.trainhub.groups")
    lines = [*dependencies, *_of_extras(project, extras)]
    for group in groups:
        lines += _of_group(_table(data, "dependency-groups"), group)
    own = canonicalize_name(str(project.get("name", "")))
    names = [(line, _name(line)) for line in lines]
    uv = _table(tool, "uv")
    _check_sources(_table(uv, "sources"), {name for _, name in names})
    lines = [line for line, name in names if name != own]
    if not lines and not has_lock:
        raise SpecError(FIELD, "project.dependencies is empty; name at least one package")
    return Pyproject(
        _requires_python(project),
        tuple(extras),
        tuple(groups),
        _read_lines([*_index_lines(uv), *lines]) if lines else RequirementList(()),
        frozenset(_name(line) for line in dependencies),
    )


def check_python_fits(requires_python: str, python: str, file: str) -> None:
    """Raises ValueError with a sentence if the file's `requires-python` excludes this minor version."""
    # The newest release of the minor version: ">=3.11.4" fits 3.11.
    if requires_python and not SpecifierSet(requires_python).contains(f"{python}.99"):
        raise ValueError(
            f"{file} says requires-python = {requires_python!r}, and this version is for Python {python}. "
            "Choose another Python, or change requires-python."
        )


def _read_lines(lines: list[str]) -> RequirementList:
    try:
        return read_requirements("\n".join(lines))
    except SpecError as error:
        number, separator, message = error.message.removeprefix("line ").partition(": ")
        if separator and number.isdecimal():
            raise SpecError(FIELD, f"{lines[int(number) - 1]!r:.100}: {message}") from error
        raise SpecError(FIELD, error.message) from error


def _requires_python(project: Mapping[str, Any]) -> str:
    text = str(project.get("requires-python", ""))
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise SpecError(FIELD, f"project.requires-python {text!r:.50} is not like >=3.11") from error
    return text


def _of_extras(project: Mapping[str, Any], extras: Iterable[str]) -> list[str]:
    tables = {
        canonicalize_name(name): value for name, value in _table(project, "optional-dependencies").items()
    }
    lines: list[str] = []
    for extra in extras:
        if canonicalize_name(extra) not in tables:
            known = ", ".join(tables) or "none"
            raise SpecError(
                FIELD, f"tool.trainhub.extras names {extra!r:.50}; project.optional-dependencies has {known}"
            )
        lines += _strings(tables[canonicalize_name(extra)], f"project.optional-dependencies.{extra}")
    return lines


def _of_group(groups: Mapping[str, Any], group: str, depth: int = 0) -> list[str]:
    tables = {canonicalize_name(name): value for name, value in groups.items()}
    entries = tables.get(canonicalize_name(group))
    if not isinstance(entries, list) or depth > MAX_GROUP_DEPTH:
        known = ", ".join(tables) or "none"
        raise SpecError(FIELD, f"there is no group {group!r:.50}; dependency-groups has {known}")
    lines: list[str] = []
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            lines += _of_group(groups, entry["include-group"], depth + 1)
        else:
            lines += _strings([entry], f"dependency-groups.{group}")
    return lines


def _check_sources(sources: Mapping[str, Any], names: set[str]) -> None:
    for package, value in sources.items():
        if canonicalize_name(package) not in names:
            continue
        for source in value if isinstance(value, list) else [value]:
            for key, remedy in _UNUSABLE.items():
                if isinstance(source, dict) and source.get(key):
                    raise SpecError(FIELD, f"tool.uv.sources.{package} has {key}: {remedy}")


def _index_lines(uv: Mapping[str, Any]) -> list[str]:
    """Returns the indexes of `[[tool.uv.index]]` as lines of a requirements file."""
    entries = uv.get("index", [])
    lines = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            option = "--index-url" if entry.get("default") is True else "--extra-index-url"
            lines.append(f"{option} {entry['url']}")
    return lines


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        # It is refused with its own text where the lines are read.
        return ""


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, Mapping):
        raise SpecError(FIELD, f"{name} must be a table")
    return value


def _strings(value: object, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SpecError(FIELD, f'{name} must be a list of texts, such as ["numpy==2.1.0"]')
    return list(value)
