"""The files of which datasets consist: where each lies, and how this machine reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Union

from trainhub_azureml.exceptions import UserErrorException

if TYPE_CHECKING:
    from trainhub_azureml.data.hub_data import HubData
    from trainhub_sdk.uploads.file_pieces import NewFile

PIECE_BYTES = 1024 * 1024
# The name of a file that is not complete, as downloads of the SDK have it.
PART = ".part"
TIMEOUT_S = 60.0


class OnHub(NamedTuple):
    dataset: str
    version: int
    path: str


class OnDisk(NamedTuple):
    path: str


class OnWeb(NamedTuple):
    url: str


class Elsewhere(NamedTuple):
    """`refusal`: why this machine cannot read it, as a sentence with the remedy."""

    refusal: str


Origin = Union[OnHub, OnDisk, OnWeb, Elsewhere]


class DataFile(NamedTuple):
    """`path`: below its dataset or datastore; `size`: in bytes; `sha256`: "" if the hub does not have it."""

    path: str
    origin: Origin
    size: int = 0
    sha256: str = ""


def fetch(hub: HubData | None, file: DataFile, folder: str) -> str:
    """Writes a file below a folder, where it appears once it is complete. Returns its path there. Raises
    UserErrorException if this machine cannot read it, and OSError of the disk."""
    import shutil

    origin, target = file.origin, os.path.join(folder, *clean_path(file.path).split("/"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    part = f"{target}{PART}"
    if isinstance(origin, OnDisk):
        shutil.copy2(origin.path, part)
        os.replace(part, target)
    elif isinstance(origin, OnWeb):
        _fetch_address(origin.url, part)
        os.replace(part, target)
    elif isinstance(origin, OnHub) and hub is not None:
        hub.download(origin.dataset, origin.version, origin.path, target)
    else:
        refusal = origin.refusal if isinstance(origin, Elsewhere) else "No hub is known."
        raise UserErrorException(f"{file.path} cannot be read here. {refusal}")
    return target


def readable_path(hub: HubData | None, file: DataFile, folder: str) -> str:
    """Returns the path of a file where it lies, or below `folder`, where it is written otherwise. Raises
    UserErrorException."""
    return file.origin.path if isinstance(file.origin, OnDisk) else fetch(hub, file, folder)


def files_below(folder: str) -> Iterator[DataFile]:
    """Yields the files of this machine below a folder, or the one at that path."""
    if os.path.isfile(folder):
        yield DataFile(os.path.basename(folder), OnDisk(folder), os.path.getsize(folder))
        return
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            yield DataFile(relative, OnDisk(path), os.path.getsize(path))


def new_file(hub: HubData, file: DataFile, folder: str) -> NewFile:
    """Returns a file for an upload; one that neither the hub nor this machine has is written below
    `folder`. Raises UserErrorException."""
    from trainhub_sdk.uploads.file_pieces import NewFile, describe_file

    if file.sha256:
        return NewFile(file.path, file.size, file.sha256)
    return describe_file(Path(readable_path(hub, file, folder)), file.path)


def select_files(files: Iterable[DataFile], paths: Iterable[str]) -> list[DataFile]:
    """Returns the files that `paths` name, each a file, a folder or a pattern (`2024/*.csv`, `**`), with
    their paths below the folder that they have in common; none if a path names none."""
    rows = list(files)
    selected: dict[str, DataFile] = {}
    bases = []
    for path in paths:
        pattern, base = _pattern(path)
        matching = [file for file in rows if pattern.match(file.path)]
        if not matching:
            return []
        is_file = len(matching) == 1 and matching[0].path == path
        bases.append(os.path.dirname(path) if is_file else base)
        selected.update({file.path: file for file in matching})
    common = os.path.commonpath(bases) if all(bases) else ""
    cut = len(common) + 1 if common else 0
    return [file._replace(path=path[cut:]) for path, file in sorted(selected.items())]


def clean_path(path: str) -> str:
    """Returns a path below a datastore without slashes around it; "" for all of it. Raises UserErrorException
    for one that leads out of it."""
    parts = [part for part in str(path).replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UserErrorException(f"path: {path} leads out of its folder by `..`: name a path below it.")
    return "/".join(parts)


def has_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?")


def _pattern(path: str) -> tuple[re.Pattern[str], str]:
    """Returns what matches the paths of files, and the folder above all of them."""
    parts = path.split("/") if path else []
    plain = next((index for index, part in enumerate(parts) if has_pattern(part)), len(parts))
    text = ""
    for sign in re.split(r"(\*\*/|\*\*|\*|\?)", path):
        text += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign))
    return re.compile(f"{text}(?:/.*)?\\Z" if path else ".*\\Z"), "/".join(parts[:plain])


def _fetch_address(url: str, target: str) -> None:
    """Writes what is at an address. Raises UserErrorException if it cannot be read, and OSError of the
    disk."""
    with open(target, "wb") as file:
        for piece in _address_pieces(url):
            file.write(piece)


def _address_pieces(url: str) -> Iterator[bytes]:
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        # The scheme was checked when the address was given.
        with urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310
            yield from iter(lambda: answer.read(PIECE_BYTES), b"")
            # The library takes an early end for the end.
            if answer.length:
                raise ConnectionError(f"the connection ended {answer.length} bytes before its end")
    except (OSError, HTTPException) as error:
        raise UserErrorException(
            f'{url} cannot be read: {error}. Download it elsewhere, and name the file by [address."{url}"] '
            "in trainhub-azureml.toml.",
            error,
        ) from error
