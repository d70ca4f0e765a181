"""The wheels that a build has left, which may be anything until they are checked."""

from __future__ import annotations

import hashlib
import os
import stat

from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

WHEEL = ".whl"
BLOCK = 1024 * 1024
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TakenWheel:
    """A wheel, copied to where no builder can change it."""

    def __init__(self, path: str, filename: str, sha256: str, size: int) -> None:
        self.path = path
        self.filename = filename
        self.sha256 = sha256
        self.size = size


def find_wheels(folder: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(WHEEL))


def check_codes(package: Mapping[str, Any], site: str) -> list[str]:
    """Returns the Python programs that must run with the built package: those of its recipe, else the import
    of the module that has its name, if there is one."""
    codes = [str(code) for code in package["checks"]]
    if codes:
        return codes
    module = str(package["name"]).replace("-", "_").replace(".", "_")
    files = (f"{site}/{module}", f"{site}/{module}.py")
    is_there = any(map(os.path.exists, files)) or any(
        name.startswith(f"{module}.") and name.endswith(".so") for name in os.listdir(site)
    )
    return [f"import {module}"] if is_there and module.isidentifier() else []


def take_wheels(work: str, name: str, folder: str) -> list[TakenWheel]:
    """Copies the wheels in the folder `name` of the builder's folder `work` into `folder`. The builder may
    have put a link or something else in the place of anything there. Raises PreparationFailed and OSError."""
    parent = os.open(work, FOLDER)
    try:
        source = os.open(name, FOLDER, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        owner = os.stat(work).st_uid
        names = sorted(item for item in os.listdir(source) if item.endswith(WHEEL))
        return [_take(source, item, folder, owner) for item in names]
    finally:
        os.close(source)


def _take(source: int, filename: str, folder: str, owner: int) -> TakenWheel:
    file = os.open(filename, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=source)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid != owner:
            raise PreparationFailed("environment", f"The build has left {filename}, which is no usual file.")
        digest = hashlib.sha256()
        target = f"{folder}/{filename}"
        with open(target, "xb") as copy:
            while block := os.read(file, BLOCK):
                digest.update(block)
                copy.write(block)
            return TakenWheel(target, filename, digest.hexdigest(), copy.tell())
    finally:
        os.close(file)
