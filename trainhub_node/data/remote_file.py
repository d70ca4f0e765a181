from __future__ import annotations

import hashlib


class RemoteFile:
    """A file of a store. `key`: its name there; `path`: where the run finds it, below the folder of its
    input; `size` in bytes; `etag`: what the store says about this version, "" if nothing; `modified_at` in
    seconds since 1970; `sha256`: what its content must have, "" if that is not known; `identity`: the name of
    exactly this content in the cache."""

    __slots__ = ("etag", "identity", "key", "modified_at", "path", "sha256", "size")

    def __init__(  # noqa: PLR0917 - one of very many, made by position
        self, key: str, path: str, size: int, etag: str, modified_at: float, scope: str, sha256: str = ""
    ) -> None:
        self.key = key
        self.path = path
        self.size = size
        self.etag = etag
        self.modified_at = modified_at
        self.sha256 = sha256
        # Without an ETag the time stands for the version, as it does for every web server's own caches.
        version = etag or f"{modified_at:.6f}"
        self.identity = hashlib.sha256("\0".join((scope, key, version, str(size))).encode()).hexdigest()
