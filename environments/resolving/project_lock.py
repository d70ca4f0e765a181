"""Locks a project: from its `uv.lock` or `pylock.toml` as it stands, or by resolving its dependencies."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from uv import find_uv_bin

from environments.errors import Unresolvable
from environments.models import EnvironmentVersion
from environments.packages.file_list import read_wheels, record_wheels
from environments.projects.pylock import lock_from_pylock
from environments.projects.pyproject import Pyproject, check_python_fits, read_pyproject
from environments.projects.source_text import PYLOCK, PYPROJECT, UV_LOCK, ProjectSource, parse_toml
from environments.requirement_list import RequirementList
from environments.resolving.limited_process import limited_command
from environments.resolving.uv_process import uv_environ, uv_limits
from trainhub_launch.errors import SpecError

EXPORT_S = 30
_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")


def lock_project(
    version: EnvironmentVersion,
    source: ProjectSource,
    resolve: Callable[[EnvironmentVersion, RequirementList], str],
) -> str:
    """Returns the lock for the version's Python. `resolve`: locks requirements where there is no lock.
    Raises Unresolvable, and what `resolve` raises."""
    try:
        if source.pylock:
            return _record_and_lock(version, source.pylock, PYLOCK)
        project = read_pyproject(source.pyproject, has_lock=bool(source.uv_lock))
        check_python_fits(project.requires_python, version.python, PYPROJECT)
        if not source.uv_lock:
            return resolve(version, project.requirements)
        _check_is_current(project, source.uv_lock)
        return _record_and_lock(version, _export(source, project), UV_LOCK)
    except SpecError as error:
        raise Unresolvable(f"{error.message[:1].upper()}{error.message[1:]}.") from error
    except ValueError as error:
        raise Unresolvable(str(error)) from error


def _record_and_lock(version: EnvironmentVersion, pylock: str, name: str) -> str:
    lock = lock_from_pylock(parse_toml(pylock, name), version.python, name)
    record_wheels(version, read_wheels(pylock), lock, version.python)
    return lock


def _check_is_current(project: Pyproject, uv_lock: str) -> None:
    """Raises Unresolvable if the lock was made from other dependencies."""
    packages = parse_toml(uv_lock, UV_LOCK).get("package", [])
    locked = {
        str(item.get("name"))
        for package in packages
        if isinstance(package, dict)
        for item in package.get("metadata", {}).get("requires-dist", [])
    }
    missing = sorted(project.names - locked)
    if missing:
        raise Unresolvable(
            f"uv.lock is older than pyproject.toml: it lacks {', '.join(missing)}. Run `uv lock`, and give "
            "both files again."
        )


def _export(source: ProjectSource, project: Pyproject) -> str:
    """Returns the project's lock as a pylock.toml. uv reads only the two files for it."""
    with tempfile.TemporaryDirectory(prefix="trainhub-export-") as name:
        folder = Path(name)
        (folder / PYPROJECT).write_text(source.pyproject)
        (folder / UV_LOCK).write_text(source.uv_lock)
        options = [f"--extra={extra}" for extra in project.extras]
        options += [f"--group={group}" for group in project.groups]
        command = [
            find_uv_bin(),
            "export",
            f"--project={folder}",
            "--frozen",
            "--offline",
            "--quiet",
            "--color=never",
            "--no-header",
            "--no-emit-project",
            "--no-default-groups",
            "--no-python-downloads",
            "--format=pylock.toml",
            *options,
        ]
        try:
            done = subprocess.run(
                limited_command(command, uv_limits()),
                cwd=settings.BASE_DIR,
                env=uv_environ(folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=EXPORT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unresolvable(f"uv took more than {EXPORT_S} seconds for uv.lock.") from error
    if done.returncode != 0:
        message = " ".join(_CREDENTIALS.sub(r"\1****@", done.stderr).replace(str(folder), ".").split())
        raise Unresolvable(f"uv cannot read uv.lock with this pyproject.toml: {message[:500]}")
    return done.stdout
