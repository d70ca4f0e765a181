"""Two hosts test datastores, and one of them lists a folder that both have; runs read what was listed."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from tests.hosts.bench import Hosts
from tests.hosts.data.test_stores import add_datastore, add_secret, check_nowhere, listed, s3, train_from
from tests.hub import eventually
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

__all__ = ["s3"]
pytestmark = [pytest.mark.hosts, pytest.mark.slow]
# Each host has its own /tmp.
FOLDER = "/tmp/shared-images"


def probed(hosts: Hosts, name: str, **body: Any) -> dict[str | None, dict[str, Any]]:
    """The result of each machine, by its name, once all have one."""
    address = f"/api/v1/datastores/{name}/test/"
    # The hub's machine is a node, too.
    nodes = [host.name for host in hosts.hosts]
    answer = hosts.runs.client.post(address, json={"nodes": nodes, **body})
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return ended_test(hosts, name)


def ended_test(hosts: Hosts, name: str) -> dict[str | None, dict[str, Any]]:
    def over() -> dict[str | None, dict[str, Any]] | None:
        test = hosts.runs.client.get(f"/api/v1/datastores/{name}/test/").json()
        return {row["node"]: row for row in test["results"]} if test["is_over"] else None

    return eventually(over, 120, "the test is over")


def test_a_store_is_tested_from_the_hub_and_from_both_hosts(hosts: Hosts, s3: S3Server) -> None:
    add_secret(hosts, "tester", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": s3.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "tested", **place, secret="tester")
    rows = probed(hosts, "tested", path="2024")
    assert set(rows) == {None, *(host.name for host in hosts.hosts)}
    for row in rows.values():
        assert row["state"] == "ok", row
        assert row["bytes"] == sum(len(content) for content in s3.objects[BUCKET].values())
        assert row["bytes_per_second"] > 0

    add_secret(hosts, "tester", "not-the-secret-part-of-it")
    for row in probed(hosts, "tested").values():
        assert row["state"] == "failed", row
        assert "The bucket birds refuses these credentials" in row["reason"]
    check_nowhere(hosts, SECRET)


def test_an_agent_that_is_killed_while_its_node_reads_costs_no_result(hosts: Hosts, s3: S3Server) -> None:
    add_secret(hosts, "slow", SECRET)
    place = {"kind": "s3", "bucket": BUCKET, "endpoint": s3.url, "access_key_id": KEY_ID}
    add_datastore(hosts, "slow", **place, secret="slow")
    host, s3.rate = hosts.hosts[0], 1_000_000.0
    try:
        body = {"nodes": [host.name], "path": "2024/large.bin"}
        assert hosts.runs.client.post("/api/v1/datastores/slow/test/", json=body).is_success
        log = eventually(lambda: begun(hosts, host.name), 60, "the node reads")
        host.kill_agent()
        rows = ended_test(hosts, "slow")
        assert rows[host.name]["state"] == "ok", (rows, log)
        assert rows[host.name]["bytes"] == 3_000_000
    finally:
        s3.rate = None
        host.start_agent()


def begun(hosts: Hosts, name: str) -> str:
    rows = hosts.runs.client.get("/api/v1/datastores/slow/test/").json()["results"]
    address = next(row["log"] for row in rows if row["node"] == name)
    log = hosts.runs.client.get(address).text
    return log if "Reading the first files" in log else ""


def test_a_folder_is_listed_by_a_host_and_a_run_reads_exactly_these_files(hosts: Hosts) -> None:
    for host in hosts.hosts:
        # The same on both, as on a file server: also the times.
        host.run(
            "sh",
            "-c",
            f"mkdir -p {FOLDER}/birds && for n in 1 2 3; do echo sparrow $n > {FOLDER}/birds/$n.txt; done && "
            f"touch -d 2026-01-01T00:00:00Z {FOLDER}/birds/*",
        )
    add_datastore(hosts, "shared", kind="folder", path=FOLDER)
    rows = probed(hosts, "shared", path="birds")
    assert rows[None]["state"] == "skipped"
    assert {rows[host.name]["files"] for host in hosts.hosts} == {3}

    body = {"name": "shared-birds", "datastore": "shared", "path": "birds"}
    version = listed(hosts, hosts.runs.client.post("/api/v1/datasets/", json=body))
    assert (version["state"], version["files"]) == ("ready", 3), version["failure"]
    ended = train_from(hosts, {"dataset": "shared-birds"})
    content = hashlib.sha256(b"".join(b"sparrow %d\n" % number for number in (1, 2, 3))).hexdigest()
    assert ended["state"] == "Completed", (ended["sentence"], ended["logs"])
    assert ended["logs"] == [f"rank {rank} reads 3 {content}\n" for rank in range(2)]

    changed, missing = hosts.hosts
    changed.run("sh", "-c", f"echo robin > {FOLDER}/birds/2.txt")
    ended = train_from(hosts, {"dataset": "shared-birds"})
    assert ended["state"] == "Failed"
    assert f"The folder {FOLDER}/birds has another 2.txt than when it was listed" in ended["sentence"]
    assert changed.name in ended["sentence"]

    missing.run("rm", "-r", f"{FOLDER}/birds")
    rows = probed(hosts, "shared", path="birds")
    assert rows[changed.name]["state"] == "ok"
    assert rows[missing.name]["state"] == "failed"
    assert rows[missing.name]["reason"].startswith(f"{FOLDER}/birds is not there: mount its file system")
