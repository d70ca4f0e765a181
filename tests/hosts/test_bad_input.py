"""What goes wrong between machines is said in a sentence, and nothing is left half done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.hosts.bench import CLUSTER, TRAINHUB_NODE, Host, Hosts
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
PORT = 6105
TWO = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
LISTENING = f"import socket, time; s = socket.create_server(('0.0.0.0', {PORT})); time.sleep(600)"


def test_a_port_that_is_taken_on_the_head_gives_way_to_the_next_and_the_run_says_so(
    hosts: Hosts, tmp_path: Path
) -> None:
    head = hosts.hosts[0]
    head.spawn(tmp_path / "log", sys.executable, "-c", LISTENING)
    eventually(lambda: f":{PORT} " in head.run("ss", "-ltn").stdout, what="somebody listens on the port")
    try:
        run = hosts.script("import os; print('port', os.environ['MASTER_PORT'])", distribution=TWO)
        ended = hosts.runs.ended(run, 60)
    finally:
        head.run("kill", str(_inner_pid(head)))
    assert ended["state"] == "Completed", ended["sentence"]
    assert hosts.runs.log(run, "70_driver_log_1.txt") == b"port 6106\n"
    values = [event["message"] for event in hosts.runs.get(f"/runs/{run}/events/")]
    assert any("MASTER_PORT is 6106: 6105 is in use on gpu-a" in message for message in values), values


def _inner_pid(host: Host) -> int:
    return int(host.run("pgrep", "-f", "create_server").stdout.split()[0])


def test_more_nodes_than_there_are_is_refused_with_what_would_fit(hosts: Hosts) -> None:
    source = {"type": "snapshot", "id": hosts.runs.snapshot(main_py="print()")}
    distribution = {**TWO, "process_count": 10, "node_count": 10}
    spec = {
        "source": source,
        "script": "main.py",
        "distribution": distribution,
        "resources": {"cluster": CLUSTER},
    }
    answer = hosts.runs.client.post("/api/v1/runs/", json=spec)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert ("distribution.node_count", True) in [
        (item["field"], "2" in item["message"]) for item in answer.json()["errors"]
    ]


def test_a_join_token_works_once_and_a_name_belongs_to_one_machine(hosts: Hosts) -> None:
    first, second = hosts.hosts
    token = hosts.hub.join_token("gpu-z")
    joined = _join(first, hosts, token, "/tmp/other")
    assert joined.returncode == 0, joined.stderr
    again = _join(second, hosts, token, "/tmp/other")
    assert (again.returncode, "used" in again.stderr) == (1, True), again.stderr
    twice = _join(second, hosts, hosts.hub.join_token("gpu-a"), "/tmp/other")
    assert (twice.returncode, "gpu-a" in twice.stderr) == (1, True), twice.stderr
    assert second.run("test", "-e", "/tmp/other/node.json", check=False).returncode == 1
    hosts.hub.manage("node", "revoke", "gpu-z")


def _join(host: Host, hosts: Hosts, token: str, folder: str) -> subprocess.CompletedProcess[str]:
    return host.run(
        *TRAINHUB_NODE,
        "join",
        hosts.hub.url,
        "--token",
        token,
        "--dir",
        folder,
        check=False,
        env=host.settings,
    )
