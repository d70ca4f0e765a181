"""The requests to the store, made with obstore."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from django.conf import settings

from workspaces import process_caches
from workspaces.hub_metrics.instruments import STORE_BYTES, STORE_FAILURES, STORE_SECONDS
from workspaces.object_store.configuration import StoreConfiguration
from workspaces.object_store.errors import ERROR_CODE, ObjectMissing, StoreUnavailable, store_error

# Up to here a file is one request. Larger ones are sent in parts, of which a store takes 10,000.
PART_BYTES, MAX_PARTS = 8 * 2**20, 9_000
# Of the parts of one file that are on their way.
MEMORY_BYTES = 64 * 2**20
# Of what is read at a time.
STREAM_BYTES = 2**20
DEFAULT_REGION = "us-east-1"
CONNECT_S, READ_S = 5, 30
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 3
_TEST_KEY = "trainhub-test"
_REGION_BODY = (
    '<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<LocationConstraint>{}</LocationConstraint></CreateBucketConfiguration>"
)
_lock = threading.Lock()
# By the process too: the library's threads do not survive a fork.
_clients: dict[tuple[int, StoreConfiguration], ObjectClient] = {}


class ObjectClient:
    """The client of one store. Its methods block; they raise StoreUnavailable."""

    def __init__(self, configuration: StoreConfiguration) -> None:
        self._configuration = configuration
        # Loaded here: it costs 15 MiB, and most hubs keep their files on the disk.
        self._library: Any = import_module("obstore")
        self._errors = (
            import_module("obstore.exceptions").BaseError,
            FileNotFoundError,
            PermissionError,
            ValueError,
        )

    def upload(self, key: str, content: Path | Iterable[bytes], size: int) -> None:
        """Writes an object of `size` bytes, which is there as a whole or not at all. The store checks the
        SHA-256 of each request, which is part of its signature."""
        with self._request("upload"):
            if size <= PART_BYTES:
                whole = content.read_bytes() if isinstance(content, Path) else b"".join(content)
                self._library.put(self._store, self._name(key), whole, use_multipart=False)
            else:
                length = part_length(size)
                concurrency = max(1, MEMORY_BYTES // length)
                self._library.put(
                    self._store, self._name(key), content, chunk_size=length, max_concurrency=concurrency
                )
        STORE_BYTES.labels("sent").inc(size)

    def open_range(self, key: str, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes of an object from `start` up to `end`, which is greater. Raises ObjectMissing."""
        with self._request("read"):
            result = self._library.get(self._store, self._name(key), options={"range": (start, end)})
        count = STORE_BYTES.labels("received")
        # What comes later takes as long as who reads it.
        with self._sentences("read"):
            for block in result.stream(min_chunk_size=STREAM_BYTES):
                # A view of the library's own memory.
                piece = bytes(block)
                count.inc(len(piece))
                yield piece

    def object_size(self, key: str) -> int:
        """Returns the size of an object. Raises ObjectMissing."""
        with self._request("size"):
            return int(self._library.head(self._store, self._name(key))["size"])

    def delete_objects(self, keys: Sequence[str]) -> None:
        """Deletes at most 1,000 objects. One that does not exist is no error."""
        with suppress(ObjectMissing), self._request("delete"):
            self._library.delete(self._store, [self._name(key) for key in keys])

    def signed_address(self, key: str, seconds: float) -> str:
        """Returns an address at which everybody can read the object for so long."""
        with self._request("sign"):
            return str(
                self._library.sign(self._public_store, "GET", self._name(key), timedelta(seconds=seconds))
            )

    def make_bucket(self) -> None:
        """Makes the bucket. Raises StoreUnavailable."""
        # The library cannot, but it signs the request.
        address = str(self._library.sign(self._store, "PUT", "", timedelta(seconds=60)))
        region = self._configuration.region or DEFAULT_REGION
        body = "" if region == DEFAULT_REGION else _REGION_BODY.format(escape(region))
        httpx = import_module("httpx")
        trusted = ssl.create_default_context()
        if self._configuration.certificates:
            trusted.load_verify_locations(cadata=self._configuration.certificates)
        try:
            answer = httpx.put(address, content=body, verify=trusted, timeout=READ_S)
        except httpx.HTTPError as error:
            raise store_error(error, self._configuration) from error
        # Another server of the hub may have made it in this moment.
        if not answer.is_success and "BucketAlreadyOwnedByYou" not in answer.text:
            code = match[1] if (match := ERROR_CODE.search(answer.text)) else f"status {answer.status_code}"
            raise StoreUnavailable(
                f"The bucket {self._configuration.bucket} could not be made ({code}): make it yourself, "
                "or let the access key make it (s3:CreateBucket).",
                is_lasting=True,
            )

    def test_rights(self) -> None:
        """Writes, reads and deletes a small object. Raises StoreUnavailable with what is wrong."""
        key, content = f"{_TEST_KEY}-{os.urandom(8).hex()}", b"TrainHub tests whether it may write here.\n"
        self.upload(key, [content], len(content))
        if b"".join(self.open_range(key, 0, len(content))) != content:
            raise StoreUnavailable(
                f"The bucket {self._configuration.bucket} does not return what was written.", is_lasting=True
            )
        self.delete_objects([key])

    @contextmanager
    def _request(self, operation: str) -> Iterator[None]:
        """Measures a request, and lets its errors be sentences."""
        with STORE_SECONDS.labels(operation).time(), self._sentences(operation):
            yield

    @contextmanager
    def _sentences(self, operation: str) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable:
            raise
        except self._errors as error:
            failure = store_error(error, self._configuration)
            # One that is not there is an answer.
            if not isinstance(failure, ObjectMissing):
                STORE_FAILURES.labels(operation).inc()
            raise failure from error

    def _name(self, key: str) -> str:
        return f"{self._configuration.prefix}/{key}" if self._configuration.prefix else key

    @cached_property
    def _store(self) -> Any:
        return self._open_store(self._configuration.endpoint)

    @cached_property
    def _public_store(self) -> Any:
        return self._open_store(self._configuration.public_endpoint or self._configuration.endpoint)

    def _open_store(self, endpoint: str) -> Any:
        asked = self._configuration
        options: dict[str, Any] = {"region": asked.region or DEFAULT_REGION}
        if endpoint:
            options["endpoint"] = endpoint
        options["virtual_hosted_style_request"] = not asked.is_path_style
        if asked.key_id:
            options |= {"access_key_id": asked.key_id, "secret_access_key": asked.secret}
        client_options: dict[str, Any] = {
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": f"{CONNECT_S}s",
            # Of each read: a large file may take long as a whole.
            "read_timeout": f"{READ_S}s",
            "timeout": "7 days",
        }
        if asked.certificates:
            client_options["root_certificate"] = asked.certificates
        return import_module("obstore.store").S3Store(
            asked.bucket,
            **options,
            client_options=client_options,
            retry_config={
                "max_retries": int(asked.retry_s / SHORTEST_PAUSE_S),
                "retry_timeout": timedelta(seconds=asked.retry_s),
                "backoff": {
                    "init_backoff": timedelta(seconds=SHORTEST_PAUSE_S),
                    "max_backoff": timedelta(seconds=LONGEST_PAUSE_S),
                    "base": 2,
                },
            },
        )


def part_length(size: int) -> int:
    """Returns of how many bytes the parts of a file of `size` bytes are."""
    return max(PART_BYTES, -(-size // MAX_PARTS))


def store_configuration() -> StoreConfiguration | None:
    """Returns what BLOB_STORE says; None if the hub keeps its files on the disk."""
    return settings.BLOB_STORE


def object_client() -> ObjectClient:
    """Returns the client of BLOB_STORE. Raises StoreUnavailable if that is not set."""
    configuration = store_configuration()
    if configuration is None:
        raise StoreUnavailable("There is no object store: set BLOB_STORE.", is_lasting=True)
    key = (os.getpid(), configuration)
    with _lock:
        if key not in _clients:
            _clients[key] = ObjectClient(configuration)
        return _clients[key]


process_caches.register(_clients.clear)
