"""Downloads files of the hub whose SHA-256 is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainhub_node.link.file_upload import digest_of
from trainhub_node.link.hub_client import HubUnavailable


class DamagedFile(HubUnavailable):
    """A file arrived whole, but with another SHA-256."""


def fetch_file(download: Callable[[Path], None], target: Path, sha256: str, what: str) -> None:
    """Makes `download` write the file `target`, unless it exists; goes on where an earlier call was cut off.
    `what`: the file in words, for the error. Raises HubError, and OSError of the disk."""
    if target.exists():
        return
    part = target.with_name(f"{target.name}.part")
    download(part)
    # Also after a complete download: the hub's disk, or a proxy, may have damaged it.
    with part.open("rb") as file:
        digest = digest_of(file.fileno(), part.stat().st_size)
    if digest != sha256:
        part.unlink()
        raise DamagedFile(f"{what} arrived damaged")
    part.rename(target)
