from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from workspaces.object_store.configuration import StoreConfiguration


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Iterator[S3Server]:
    """The hub keeps its files in this store, below the prefix `hub`. Requests are tried again for a second
    only."""
    server = S3Server()
    settings.DATA_DIR = tmp_path
    settings.BLOB_STORE = StoreConfiguration(
        BUCKET, "hub", server.url, key_id=KEY_ID, secret=SECRET, deleted_days=7, retry_s=1
    )
    yield server
    server.close()


def reconfigure(settings: Any, **changes: object) -> None:
    """Changes what BLOB_STORE… say."""
    settings.BLOB_STORE = replace(settings.BLOB_STORE, **changes)
