"""Reads the source of a version of kind pip, whichever form it has."""

from __future__ import annotations

from environments.projects.pylock import pylock_pins
from environments.projects.pyproject import read_pyproject
from environments.projects.source_text import PYLOCK, ProjectSource, is_project, parse_toml, split_project
from environments.requirement_list import RequirementList, read_requirements


def source_requirements(source: str) -> RequirementList:
    """Returns what a list of requirements or a project asks for. Raises SpecError."""
    return project_requirements(split_project(source)) if is_project(source) else read_requirements(source)


def project_requirements(source: ProjectSource) -> RequirementList:
    """Returns what the project asks for. Raises SpecError."""
    if source.pylock:
        return RequirementList(pylock_pins(parse_toml(source.pylock, PYLOCK)))
    return read_pyproject(source.pyproject, has_lock=bool(source.uv_lock)).requirements
