"""What the argument `path` of the SDK v1 means: places of data."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union
from urllib.parse import unquote, urlsplit

from trainhub_azureml.data.data_files import (
    DataFile,
    OnDisk,
    OnWeb,
    clean_path,
    files_below,
    has_pattern,
    select_files,
)
from trainhub_azureml.data.data_reference import DataPath, DataReference
from trainhub_azureml.data.datastore import Datastore
from trainhub_azureml.exceptions import UserErrorException


class StorePath(NamedTuple):
    datastore: Datastore
    path: str


class WebAddress(NamedTuple):
    """`local`: the file of this machine that the mapping file names for it, "" for none."""

    url: str
    local: str = ""


class LocalPath(NamedTuple):
    """A file or folder of this machine: an input of this job."""

    path: str


Source = Union[StorePath, WebAddress, LocalPath]


def parse_sources(path: Any) -> tuple[Source, ...]:
    """Returns the places that `path` names: (datastore, path), an address, or a list of these. Raises
    UserErrorException."""
    if isinstance(path, (DataPath, DataReference)):
        return (StorePath(path.datastore, path.path_on_datastore),)
    if isinstance(path, Datastore):
        return (StorePath(path, ""),)
    if isinstance(path, str):
        return (_address(path),)
    if isinstance(path, (tuple, list)) and len(path) == 2 and isinstance(path[0], Datastore):
        below = [path[1]] if isinstance(path[1], str) or path[1] is None else list(path[1])
        return tuple(StorePath(path[0], clean_path(item or "")) for item in below)
    if isinstance(path, (tuple, list)) and path:
        return tuple(source for item in path for source in parse_sources(item))
    raise UserErrorException(
        f"path: {path!r} is neither (datastore, 'path') nor an address nor a list of these."
    )


def source_files(sources: Sequence[Source]) -> list[DataFile]:
    """Returns the files at these places, with their paths below the folder that they have in common. Raises
    UserErrorException for a place that has none, or that this machine cannot list."""
    files = [file for source in sources for file in _plain_files(source)]
    paths: dict[str, list[StorePath]] = {}
    for source in sources:
        if isinstance(source, StorePath):
            paths.setdefault(source.datastore._row.name, []).append(source)
    for group in paths.values():
        datastore = group[0].datastore
        selected = select_files(datastore._files(), [source.path for source in group])
        if not selected:
            listed = ", ".join(source.path or "any file" for source in group)
            raise UserErrorException(
                f"The datastore {datastore.name} does not have {listed}: upload it by Datastore.upload, or "
                f'map [datastore."{datastore.name}"] in trainhub-azureml.toml.'
            )
        files += selected
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise UserErrorException(f"path: two files are called {file.path}; make a dataset of each.")
        seen.add(file.path)
    return files


def folder_path(path: str) -> str:
    """Returns the folder or file that a path of a store names, where the hub lists the files. Raises
    UserErrorException for a pattern that is not all of a folder."""
    parts = path.split("/") if path else []
    if parts[-2:] == ["**", "*"]:
        del parts[-1]
    if parts[-1:] == ["**"]:
        del parts[-1]
    folder = "/".join(parts)
    if has_pattern(folder):
        raise UserErrorException(
            f"path: {path} is a pattern; name a folder, a file, or all of a folder as x/**."
        )
    return folder


def _address(url: str) -> WebAddress:
    from trainhub_azureml.local_files.mapping import load_mapping

    if urlsplit(url).scheme not in ("http", "https"):
        raise UserErrorException(
            f"path: {url} is no address. Upload local files by Dataset.File.upload_directory or "
            "Datastore.upload_files, and name them as (datastore, 'path')."
        )
    return WebAddress(url, _mapped(url, load_mapping().addresses))


def _mapped(url: str, addresses: Mapping[str, str]) -> str:
    for start in sorted(addresses, key=len, reverse=True):
        if url == start:
            return addresses[start]
        if url.startswith(f"{start.rstrip('/')}/"):
            return posixpath.join(addresses[start], url[len(start.rstrip("/")) + 1 :])
    return ""


def _plain_files(source: Source) -> Iterable[DataFile]:
    if isinstance(source, LocalPath):
        return files_below(source.path)
    if isinstance(source, WebAddress):
        name = posixpath.basename(unquote(urlsplit(source.url).path)) or "index"
        return [DataFile(name, OnDisk(source.local) if source.local else OnWeb(source.url))]
    return ()
