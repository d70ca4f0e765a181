"""The rules for the path of a folder that runs read."""

from __future__ import annotations

import posixpath

from trainhub_launch.errors import SpecError

MAX_LENGTH = 1024
# What belongs to the system, and what a container has of its own.
SYSTEM_FOLDERS = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/run",
)


def check_folder_path(text: str) -> str:
    """Returns the path in its shortest form. Raises SpecError if no datastore may have it."""
    path = text.strip()
    if not path.startswith("/") or not path.isprintable() or set(path) & set(',"'):
        raise SpecError(
            "path",
            "must be the absolute path of a folder on the nodes, such as /mnt/images, without commas, "
            "quotation marks and line breaks",
        )
    if ".." in path.split("/"):
        raise SpecError("path", "must not contain '..'; write the path that it leads to")
    path = posixpath.normpath(f"/{path.lstrip('/')}")
    if len(path) > MAX_LENGTH:
        raise SpecError("path", f"has {len(path):,} characters, and at most {MAX_LENGTH:,} are accepted")
    if path == "/" or any(path == folder or path.startswith(f"{folder}/") for folder in SYSTEM_FOLDERS):
        raise SpecError("path", f"{path} belongs to the system; name a folder that holds only data")
    return path
