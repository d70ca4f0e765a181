"""Files that a person has sent to the hub in pieces (/api/v1/uploads/SHA256), as those of a new version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from jobs.transfer import uploaded_blobs
from registry.errors import RegistryError
from registry.file_paths import FilePaths
from registry.registration import UPLOAD, File, Origin
from workspaces.access import Principal
from workspaces.stored_files import blob_cache, blob_names, blobs


def uploaded_origin(who: Principal, rows: Sequence[Mapping[str, str]]) -> Origin:
    """Returns the files of a new version. `rows`: {path, sha256} of each. Raises RegistryError if there are
    none, or for one that the person may not name or that is not stored."""
    if not rows:
        raise RegistryError("files", "is empty; name at least one file")
    paths = FilePaths()
    for row in rows:
        paths.add(row["path"])
    _check_allowed(who, rows)
    return Origin(UPLOAD, tuple(_stored_file(row["path"], row["sha256"]) for row in rows))


def _check_allowed(who: Principal, rows: Iterable[Mapping[str, str]]) -> None:
    rest = iter(rows)
    while some := list(islice(rest, blob_names.AT_ONCE)):
        allowed = uploaded_blobs.allowed_hashes(who, (row["sha256"] for row in some))
        for row in some:
            if row["sha256"] not in allowed:
                raise _not_stored(row["path"], row["sha256"])


def _stored_file(path: str, sha256: str) -> File:
    # From here on it is not deleted before it has been named.
    if not blobs.hold(sha256):
        raise _not_stored(path, sha256)
    return File(path, blob_cache.size_of(sha256), sha256)


def _not_stored(path: str, sha256: str) -> RegistryError:
    return RegistryError(
        "files",
        f"of {path!r} the hub has no content with this SHA-256 from you; send it to /api/v1/uploads/{sha256}",
    )
