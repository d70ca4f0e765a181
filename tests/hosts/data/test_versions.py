"""Runs on two hosts with a version of a dataset whose files were changed, or whose files they stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.hosts.bench import Hosts
from tests.hosts.data.test_stores import (
    DISTRIBUTION,
    add_datastore,
    add_secret,
    check_nowhere,
    check_read,
    digest,
    listed,
    train_from,
)
from tests.signing_in import page_client
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
# Others on these hosts have had files of these names already.
PATH = f"versions-{time.time_ns()}"
FILES = {f"{PATH}/{number:02d}.bin": f"{PATH} {number}".encode() for number in range(30)}
STREAM = """
import hashlib, json, os, urllib.request
digest = hashlib.sha256()
with open(os.environ['TRAINHUB_INPUT_BIRDS_FILES']) as lines:
    files = [json.loads(line) for line in lines]
for file in files:
    request = urllib.request.Request(file['url'], headers={'If-Match': file['etag']})
    digest.update(urllib.request.urlopen(request).read())
print(files[0]['url'])
print('rank', os.environ['RANK'], 'reads', len(files), digest.hexdigest(), flush=True)
"""


@pytest.fixture(scope="module")
def s3(hosts: Hosts) -> Iterator[S3Server]:
    """A store with a dataset `changing`."""
    server = S3Server(hosts.bridge.hub_address)
    server.objects[BUCKET] = dict(FILES)
    add_secret(hosts, "versions-key", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "versions", **place, secret="versions-key")
    body = {"name": "changing", "datastore": "versions", "path": PATH}
    first = listed(hosts, hosts.runs.client.post("/api/v1/datasets/", json=body))
    assert (first["state"], first["files"]) == ("ready", len(FILES)), first["failure"]
    yield server
    server.close()


def test_are_streamed_by_every_rank(hosts: Hosts, s3: S3Server) -> None:
    birds = {"dataset": "changing", "mode": "reference"}
    run = hosts.script(STREAM, inputs={"birds": birds}, distribution=DISTRIBUTION)
    ended = hosts.runs.ended(run, 180)
    content = digest([FILES[name] for name in sorted(FILES)])
    for rank in range(2):
        first, second = hosts.runs.log(run, f"70_driver_log_{rank}.txt").decode().splitlines()
        assert (ended["state"], second) == ("Completed", f"rank {rank} reads {len(FILES)} {content}")
        assert first.endswith(f"X-Amz-Signature={'*' * 64}")
    check_nowhere(hosts, SECRET)


def test_that_were_changed_are_used_where_the_run_says_so(hosts: Hosts, s3: S3Server) -> None:
    changed, removed = sorted(FILES)[:2]
    s3.objects[BUCKET][changed] = b"another content"
    del s3.objects[BUCKET][removed]
    version: dict[str, Any] = {"dataset": "changing", "version": 1}
    ended = train_from(hosts, version)
    assert ended["state"] == "Failed"
    assert 'Or choose "if_changed": "use" for this input' in ended["sentence"]
    ended = train_from(hosts, {**version, "if_changed": "use"})
    now = s3.objects[BUCKET]
    check_read(ended, len(FILES) - 1, digest([now[name] for name in sorted(now)]))
    with closing(page_client(hosts.hub)) as person:
        page = person.get(f"/runs/{ended['number']}/").text
        assert page.count("Input birds is not exactly its version: on node") == 2
        assert "00.bin was changed, 01.bin is gone" in page
        lineage = person.get("/data/sets/changing/1/").text
        assert lineage.count("with files that were changed or gone") == 1
