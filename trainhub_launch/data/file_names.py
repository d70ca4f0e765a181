"""Which names of a store's objects can be names of files."""

from __future__ import annotations

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 3000
# Far more than anybody can use as single files.
MAX_FILES = 5_000_000


def is_file_name(path: str) -> bool:
    """Returns whether a file can have this path, whose parts are separated by "/"."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        return False
    sizes = [len(part.encode(errors="surrogateescape")) for part in parts]
    return max(sizes) <= MAX_NAME_BYTES and sum(sizes) + len(sizes) <= MAX_PATH_BYTES


def odd_name(store: str, key: str) -> str:
    """Returns a sentence about an object whose name cannot be a file's. `store`: the beginning of the
    sentence."""
    return (
        f"{store} has an object {key!r:.300}, whose name cannot be a file's: rename it, or name a folder "
        "without it."
    )


def too_many(store: str, path: str) -> str:
    return (
        f"{store} has more than {MAX_FILES:,} files below {path or 'its top'}: name a folder below it, or "
        "pack them into archives."
    )


def both_file_and_folder(store: str, path: str) -> str:
    return f"{store} has both a file {path} and files below {path}/, which no disk can have: rename one."


def nothing_there(store: str, path: str) -> str:
    return f"{store} has nothing at {path or 'its top'}: check the path and its capital letters."
