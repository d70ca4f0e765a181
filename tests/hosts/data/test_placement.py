"""Runs go to the host that has their data, and are refused if it fits on none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from clusters.node_facts import REUSED_FOR_S
from tests.hosts.bench import Host, Hosts
from tests.hosts.data.test_stores import FILES, add_datastore, add_secret, listed
from tests.hub import eventually
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
SIZE = sum(map(len, FILES.values()))
BIRDS = {"birds": {"dataset": "placed-birds", "version": 1}}
SETTING = "TRAINHUB_NODE_DATA_CACHE_BYTES"


@pytest.fixture(scope="module")
def birds(apart: Hosts) -> Iterator[S3Server]:
    """Serves version 1 of a dataset."""
    server = S3Server(apart.bridge.hub_address)
    server.objects[BUCKET] = dict(FILES)
    add_secret(apart, "placing", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    add_datastore(apart, "placing", **place, secret="placing")
    body = {"name": "placed-birds", "datastore": "placing", "path": "2024"}
    version = listed(apart, apart.runs.client.post("/api/v1/datasets/", json=body))
    assert (version["state"], version["bytes"]) == ("ready", SIZE), version["failure"]
    yield server
    server.close()


def post(hosts: Hosts, path: str) -> None:
    answer = hosts.runs.client.post(f"/api/v1/nodes/{path}")
    assert answer.is_success, answer.text


def node_of(hosts: Hosts, run: str) -> str:
    """The only node of a run that has ended well."""
    ended = hosts.runs.ended(run, 120)
    assert ended["state"] == "Completed", ended["sentence"]
    (member,) = hosts.runs.members(run)
    return str(member["node"])


def test_a_run_goes_to_the_host_that_has_its_data(apart: Hosts, birds: S3Server) -> None:
    first, second = apart.hosts
    post(apart, f"{first.name}/drain/")
    try:
        assert node_of(apart, apart.script("print('reads')", inputs=BIRDS)) == second.name
    finally:
        post(apart, f"{first.name}/resume/")
    page = f"/api/v1/nodes/{second.name}/"
    eventually(lambda: apart.runs.client.get(page).json()["data_lists"], 30, "the node says what it has")
    sent = birds.sent
    assert node_of(apart, apart.script("print('reads again')", inputs=BIRDS)) == second.name
    assert birds.sent == sent, "nothing was downloaded"
    # What the hub has read while the first host was drained no longer counts. By its name it comes first.
    time.sleep(REUSED_FOR_S)
    assert node_of(apart, apart.script("print('reads nothing')")) == first.name


def resize(hosts: Hosts, host: Host, size: int) -> None:
    """Starts its agent again, with a cache of this size; 0: the default."""
    host.kill_agent()
    host.settings.pop(SETTING, None)
    if size:
        host.settings[SETTING] = str(size)
    host.start_agent()

    def is_back() -> bool:
        cache_bytes = int(hosts.runs.client.get(f"/api/v1/nodes/{host.name}/").json()["data_cache_bytes"])
        return cache_bytes == size if size else cache_bytes > SIZE

    eventually(is_back, 60, "the agent is back")


def test_data_that_fits_on_no_host_is_refused_with_the_numbers(apart: Hosts, birds: S3Server) -> None:
    try:
        for host, size in zip(apart.hosts, (SIZE - 1, SIZE // 2), strict=True):
            resize(apart, host, size)
        time.sleep(REUSED_FOR_S)  # what was read before counts for so long
        spec: dict[str, Any] = {
            "source": {"type": "example", "name": "digits-single"},
            "script": "train.py",
            "resources": {"cluster": "gang"},
            "inputs": BIRDS,
        }
        answer = apart.runs.client.post("/api/v1/runs/", json=spec)
        assert answer.status_code == httpx.codes.BAD_REQUEST
        (error,) = answer.json()["errors"]
        assert error["field"] == "inputs"
        assert f"no node has so much room for data: {apart.hosts[0].name} has 3.4 MiB" in error["message"]
        resize(apart, apart.hosts[1], SIZE)
        assert node_of(apart, apart.script("print('fits there')", inputs=BIRDS)) == apart.hosts[1].name
    finally:
        for host in apart.hosts:
            resize(apart, host, 0)
