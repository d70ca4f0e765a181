"""What the page System, its API and `/metrics` say of the object store."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.people import api_client, make_operator
from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import stored, uploaded
from workspaces.hub_metrics.publisher import Publisher
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import StoredObject
from workspaces.stored_files import blob_cache, blob_uploads

pytestmark = pytest.mark.django_db
SIZE = 300_000


@pytest.fixture
def worker() -> Publisher:
    """A process that measures from now on."""
    publisher = Publisher("worker", "0.1.0")
    publisher.publish()
    return publisher


def figures() -> dict[str, Any]:
    answer = api_client(make_operator()).get("/api/v1/system/").json()
    return dict(answer["store"])


def use(store: S3Server, settings: Any) -> None:
    """Two uploads, a read from the store and one from the disk, one file that waits, and one that fails."""
    first = uploaded(b"a" * SIZE, is_local=False)
    uploaded(b"b" * SIZE)
    blob_cache.local_path(first)
    blob_cache.local_path(first)
    stored(b"c" * SIZE)
    store.close()
    reconfigure(settings, retry_s=0.2)
    assert blob_uploads.upload_waiting() == 0
    assert StoredObject.objects.filter(tries=1).count() == 1


@pytest.mark.django_db(transaction=True)
def test_requests_bytes_reads_and_what_waits_are_counted(
    store: S3Server, settings: Any, worker: Publisher, client: Client
) -> None:
    use(store, settings)
    worker.publish()
    answer = figures()
    requests = {request["name"]: (request["count"], request["failed"]) for request in answer["requests"]}
    assert requests["upload"] == (3, 1)
    assert requests["read"] == (1, 0)
    assert (answer["sent_bytes"], answer["received_bytes"]) == (2 * SIZE, SIZE)
    assert (answer["upload_retries"], answer["store_reads"]) == (1, 1)
    assert answer["disk_reads"] >= 1
    assert (answer["waiting"], answer["waiting_bytes"]) == (1, SIZE)
    assert answer["oldest_at"] is not None
    assert answer["cache_bytes"] >= SIZE
    assert answer["place"] == settings.BLOB_STORE.place

    operator = make_operator()
    client.force_login(operator)
    page = re.sub(r"<[^>]+>|\s+", " ", client.get("/system/").content.decode())
    assert re.search(r"upload +3 +1 ", page)
    assert "Waiting for their upload: 1 files" in re.sub(" +", " ", page)

    text = api_client(operator).get("/metrics").content.decode()
    assert re.search(r'trainhub_store_failures_total\{operation="upload",process="[^"]+"\} [1-9]', text)
    assert re.search(r'trainhub_blob_reads_total\{place="store",process="[^"]+"\} [1-9]', text)
    assert f"\ntrainhub_waiting_upload_bytes {float(SIZE)}\n" in text


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_not_there_is_no_failure(store: S3Server, worker: Publisher) -> None:
    sha256 = uploaded(b"d" * SIZE, is_local=False)
    next(iter(store.objects.values())).clear()
    with pytest.raises(StoreUnavailable):
        blob_cache.local_path(sha256)
    worker.publish()
    (read,) = [request for request in figures()["requests"] if request["name"] == "read"]
    assert (read["count"], read["failed"]) == (1, 0)


def test_without_a_store_there_is_nothing(worker: Publisher, client: Client) -> None:
    worker.publish()
    operator = make_operator()
    assert api_client(operator).get("/api/v1/system/").json()["store"] is None
    client.force_login(operator)
    assert "Object store" not in client.get("/system/").content.decode()
    assert "trainhub_waiting_uploads" not in api_client(operator).get("/metrics").content.decode()
