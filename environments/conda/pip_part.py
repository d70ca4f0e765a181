"""Locks what pip installs on top of the packages of conda, which it must not replace."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from environments.conda.conda_lock import CondaLock, CondaPackage
from environments.errors import Unresolvable
from environments.models import EnvironmentVersion
from environments.requirement_list import RequirementList
from environments.resolving.requirements import resolve_requirements
from environments.resolving.stand_in_wheels import write_stand_in

MARK = "conda"
# conda's name -> pip's, where they differ.
PIP_NAMES = {
    "faiss-cpu": "faiss",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "py-opencv": "opencv-python",
    "pytables": "tables",
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "tensorflow-base": "tensorflow",
}


def lock_pip_part(version: EnvironmentVersion, requirements: RequirementList, conda: CondaLock) -> str:
    """Returns the lock of the requirements and of what they need, without what conda provides. Raises
    Unresolvable."""
    python = ".".join(conda.python.split(".")[:2])
    provided = _provided(conda.packages)
    with tempfile.TemporaryDirectory(prefix="trainhub-conda-") as name:
        folder = Path(name)
        for package, number in provided.items():
            # Without requirements: conda has solved these already.
            write_stand_in(folder, package, number)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{package}=={number}\n" for package, number in provided.items()))
        try:
            more = {"UV_FIND_LINKS": name, "UV_CONSTRAINT": str(constraints)}
            lock = resolve_requirements(version, requirements, python, more, provided)
        except Unresolvable as error:
            raise Unresolvable(_reason(str(error), provided)) from error
    return "\n".join(
        block
        for block in re.split(r"\n(?=[A-Za-z0-9-])", lock)
        if not re.match(rf"[^\s;]+==[^\s;]+[+.]{MARK}[\s;\\]", f"{block}\n")
    )


def _reason(message: str, provided: Mapping[str, str]) -> str:
    """Returns the message about the requirements, with the versions of conda that they have to fit."""
    text = re.sub(rf"[+.]{MARK}\b", "", message)
    versions = [
        f"{package} {version.removesuffix(MARK)[:-1]}"
        for package, version in provided.items()
        if re.search(rf"\b{re.escape(package)}[<>=!~]", text)
    ]
    return f"Below 'pip:': {text}" + (f" From conda are {', '.join(versions)}." if versions else "")


def _provided(packages: Iterable[CondaPackage]) -> dict[str, str]:
    """Returns the Python packages of conda by the names that pip gives them. Their versions have a mark that
    no index has, so that pip's resolver takes these and nothing else."""
    provided: dict[str, str] = {}
    for package in packages:
        if not package.is_module:
            continue
        try:
            version = Version(package.version)
        except InvalidVersion:
            continue  # conda allows more than pip; nothing on an index can ask for such a version
        mark = f".{MARK}" if version.local else f"+{MARK}"
        provided[canonicalize_name(PIP_NAMES.get(package.name, package.name))] = f"{version}{mark}"
    return provided
