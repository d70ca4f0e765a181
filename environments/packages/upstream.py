"""Downloads a package file from the index or channel that has it, into the store of the hub, with limits of
time and size."""

from __future__ import annotations

import os
import ssl
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import httpx

from environments.conda.channel_list import channel_alias, file_error
from environments.indexes.index_policy import PORTS, IndexRefused, check_address
from environments.indexes.index_secrets import SecretRefused
from environments.indexes.index_settings import read_hub_pip_settings
from environments.models import LockedFile
from environments.packages.private_logins import index_login, named_repository, repository_login
from environments.repositories.commit_archive import open_commit_archive
from environments.repositories.git_process import RepositoryFailed
from environments.repositories.repository_address import PREFIX, read_repository
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import BlobWriter

MAX_BYTES = 8 * 2**30
MAX_S = 3600.0
SILENCE_S = 30.0
MAX_REDIRECTS = 5
ATTEMPTS = 3
PAUSE_S = 1.0
SETTINGS_LIFETIME_S = 300.0
_settings_lock = threading.Lock()
_AGAIN = (408, 429, 500, 502, 503, 504)


class FetchFailed(Exception):
    """A file could not be fetched; the message is a sentence that says why, without the name of the file."""


class _Temporary(FetchFailed):
    """Another attempt may succeed."""


def download_package(file: LockedFile) -> int:
    """Stores the bytes of the file and returns their number. Raises FetchFailed."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _download(file)
        except _Temporary:
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE_S)
    raise AssertionError("unreachable")


def _download(file: LockedFile) -> int:
    deadline = time.monotonic() + MAX_S
    limit = file.size_bytes or MAX_BYTES
    try:
        with _pieces(file) as pieces, BlobWriter() as writer:
            for piece in pieces:
                writer.write(piece)
                if writer.size > limit:
                    raise FetchFailed(f"it has more than the {limit:,} bytes that were expected")
                if time.monotonic() > deadline:
                    raise FetchFailed(f"it did not arrive within {MAX_S / 60:.0f} minutes")
            writer.finish(file.sha256)
            return writer.size
    except blobs.BlobError as error:
        place = "channel" if file.is_conda else "index"
        raise FetchFailed(
            f"the {place} has another file of that name: its hash is not the one of the lock; lock it "
            "again, and make a new version of the environment"
        ) from error
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise FetchFailed("the disk of the hub is full; an operator must make room there") from error
        raise FetchFailed(f"the hub could not store it: {error.strerror}") from error


@contextmanager
def _pieces(file: LockedFile) -> Iterator[Iterator[bytes]]:
    parts = urlsplit(file.url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        with _open_in_channel(file.url, path) if file.is_conda else _open_in_index(path) as local:
            yield iter(lambda: local.read(blobs.CHUNK_BYTES), b"")
        return
    if file.url.startswith(PREFIX):
        with _open_commit(file) as local:
            yield iter(lambda: local.read(blobs.CHUNK_BYTES), b"")
        return
    try:
        with (
            httpx.Client(verify=_trust(_settings().get("cert", "")), timeout=SILENCE_S) as client,
            _answer(client, file) as answer,
        ):
            yield answer.iter_raw(blobs.CHUNK_BYTES)
    except httpx.HTTPError as error:
        reason = str(error).rstrip(".") or f"it was silent for {SILENCE_S:.0f} seconds"
        raise _Temporary(f"{parts.hostname} does not answer: {reason}") from error


@contextmanager
def _open_commit(file: LockedFile) -> Iterator[BinaryIO]:
    """Opens the archive of a commit that has been removed from the hub since."""
    repository = read_repository(file.url)
    named = named_repository(file.version, file.project)
    try:
        login = repository_login(file.version, named) if named is not None else None
        with (
            open_commit_archive(repository, login, file.project.replace("-", "_")) as archive,
            archive.path.open("rb") as local,
        ):
            yield local
    except (RepositoryFailed, SecretRefused) as error:
        raise FetchFailed(str(error).rstrip(".")) from error


@contextmanager
def _answer(client: httpx.Client, file: LockedFile) -> Iterator[httpx.Response]:
    """Follows redirects by itself, because each address is checked."""
    url = file.url
    for _ in range(MAX_REDIRECTS + 1):
        parts = urlsplit(url)
        _check(file, parts)
        headers = {"Accept-Encoding": "identity"}
        with client.stream("GET", url, headers=headers, auth=_login(file, parts)) as answer:
            if answer.is_redirect:
                url = urljoin(url, answer.headers.get("location", ""))
                continue
            code = answer.status_code
            if code != httpx.codes.OK:
                kind = _Temporary if code in _AGAIN else FetchFailed
                raise kind(f"{parts.hostname} answers {code} {answer.reason_phrase}".rstrip())
            yield answer
            return
    raise FetchFailed(f"{urlsplit(url).hostname} redirects more than {MAX_REDIRECTS} times")


def _check(file: LockedFile, parts: SplitResult) -> None:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise FetchFailed("its address on the index is not an http:// or https:// address")
    own = {_netloc(urlsplit(channel_alias()))} if file.is_conda else _configured()
    if _netloc(parts) in own:
        return  # the operator's own choice
    try:
        check_address(parts.hostname, port or PORTS[parts.scheme])
    except IndexRefused as error:
        raise FetchFailed(str(error)) from error


def _login(file: LockedFile, parts: SplitResult) -> httpx.BasicAuth | None:
    """Returns user and password for this host: those of the requirements, else those of the hub's own pip.
    Channels of conda have none."""
    if file.is_conda:
        return None
    try:
        login = index_login(file.version, *_netloc(parts))
    except SecretRefused as error:
        raise FetchFailed(str(error).rstrip(".")) from error
    if login is not None:
        return httpx.BasicAuth(login.username, login.password)
    index = _configured().get(_netloc(parts))
    if index is None or index.username is None:
        return None
    return httpx.BasicAuth(unquote(index.username), unquote(index.password or ""))


def _netloc(parts: SplitResult) -> tuple[str, str]:
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


def _configured() -> Mapping[tuple[str, str], SplitResult]:
    """Returns the operator's indexes by scheme and host; those with a password win."""
    pip = _settings()
    urls = [pip.get("index-url", ""), *pip.get("extra-index-url", "").split(), *_folders()]
    parts = sorted((urlsplit(url) for url in urls if "://" in url), key=lambda item: item.username or "")
    return {_netloc(item): item for item in parts}


def _folders() -> list[str]:
    return _settings().get("find-links", "").split()


def _open_in_channel(url: str, path: Path) -> BinaryIO:
    """Opens a file of a channel that is a folder of this machine: only below folders that the operator has
    named."""
    if file_error(url):
        raise FetchFailed("it is a file outside of the folders for channels (CONDA_CHANNEL_FOLDERS)")
    return _open_file(path.resolve())


def _open_in_index(path: Path) -> BinaryIO:
    """Opens a file of an index that is a folder of this machine: only below folders that the operator has
    given to pip."""
    pip = _settings()
    indexes = [pip.get("index-url", ""), *pip.get("extra-index-url", "").split()]
    # The files of an index …/simple may lie beside that folder.
    roots = [Path(unquote(urlsplit(url).path)).parent for url in indexes if url.startswith("file:")]
    roots += [Path(unquote(urlsplit(url).path) if "://" in url else url) for url in _folders()]
    real = path.resolve()
    if not any(len(root.parts) > 1 and real.is_relative_to(root.resolve()) for root in roots):
        raise FetchFailed("it is a file outside of the folders that pip is given on the hub")
    return _open_file(real)


def _open_file(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
    except OSError as error:
        raise FetchFailed(f"it cannot be read on the hub: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FetchFailed("it is no file")
    return file


def _settings() -> Mapping[str, str]:
    # One thread asks pip, which takes a second, and the others wait for it.
    with _settings_lock:
        return _settings_at(int(time.monotonic() / SETTINGS_LIFETIME_S))


@lru_cache(maxsize=1)
def _settings_at(_period: int) -> Mapping[str, str]:
    return read_hub_pip_settings()


@lru_cache(maxsize=2)
def _trust(certificates: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates or None)
