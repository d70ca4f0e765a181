"""The folder of keys: separate from the backups, because both together are the secrets in plain text."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainhub.backup.data_folder import KeyFile, key_files
from trainhub.backup.errors import BackupError
from trainhub.backup.file_copy import make_folder

SUMS = "keys.json"
README = """\
These are the keys of a TrainHub: with them and its backup, everything in it can be read, and models can be
signed in its name. Keep this folder where the backups are not: in a safe, a password manager, or on another
machine that those who read the backups cannot enter. Only the newest folder and those of backups that you
still keep are needed.

To restore: manage.py restore FOLDER --keys THIS_FOLDER
"""


@dataclass(frozen=True)
class KeyContent:
    """The content of a key file at one moment."""

    key: KeyFile
    content: bytes


def read_keys() -> list[KeyContent]:
    """Returns the keys that the hub has now."""
    return [KeyContent(key, key.path.read_bytes()) for key in key_files() if key.path.exists()]


def union(before: list[KeyContent], after: list[KeyContent]) -> list[KeyContent]:
    """Returns the keys of `after`; in the keyring of secrets also those that were only there `before`. A
    rotation between the two removes keys with which the copied database is encrypted."""
    earlier = {item.key.name: item.content.splitlines(keepends=True) for item in before}
    merged = []
    for item in after:
        lines = item.content.splitlines(keepends=True)
        if item.key.name == "secrets-keyring":
            lines += [line for line in earlier.get(item.key.name, []) if line not in lines]
        merged.append(dataclasses.replace(item, content=b"".join(lines)))
    return merged


def write_keys(folder: Path, name: str, keys: list[KeyContent]) -> Path:
    """Writes the keys of the backup `name` below `folder`, and returns where. The sums come last: without
    them the folder does not count."""
    target = folder / name
    make_folder(target)
    _write(folder / "README.txt", README.encode())
    for item in keys:
        _write(target / item.key.name, item.content)
    sums = {item.key.name: hashlib.sha256(item.content).hexdigest() for item in keys}
    _write(target / SUMS, json.dumps(sums, indent=1).encode())
    return target


def open_keys(folder: Path, name: str) -> list[KeyContent]:
    """Returns the keys of the backup `name` from `folder`, or from its folder of that name. Raises
    BackupError if they are not there, or damaged."""
    source = folder if (folder / SUMS).exists() else folder / name
    try:
        sums = json.loads((source / SUMS).read_text())
        keys = [KeyContent(key, (source / key.name).read_bytes()) for key in key_files() if key.name in sums]
    except (OSError, ValueError) as error:
        raise BackupError(
            f"{source} does not hold the keys of the backup {name}: {error}. Name the folder that "
            "`--with-keys` wrote, or restore without keys."
        ) from error
    for item in keys:
        if hashlib.sha256(item.content).hexdigest() != sums[item.key.name]:
            raise BackupError(f"{source / item.key.name} is damaged. Use another copy of the keys.")
    return keys


def check_places(keys: list[KeyContent]) -> None:
    """Raises BackupError if another key lies where one of these belongs."""
    for item in keys:
        if item.key.path.exists() and item.key.path.read_bytes() != item.content:
            raise BackupError(
                f"{item.key.path} exists and is another key than that of the backup. Move it away, or "
                "restore without --keys."
            )


def place_keys(keys: list[KeyContent]) -> None:
    """Writes the keys to where the hub reads them."""
    for item in keys:
        make_folder(item.key.path.parent)
        _write(item.key.path, item.content)


def lost_keys(names: list[str]) -> Iterator[KeyFile]:
    """Yields the keys of these names that are not where the hub reads them; of several with the same
    consequence the first one."""
    losses = set()
    for key in key_files():
        if key.name in names and not key.path.exists() and key.loss not in losses:
            losses.add(key.loss)
            yield key


def _write(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
