"""Two web servers and two workers behind a proxy that sends each request to the next one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.hosts.unhealthy import build_clock
from tests.hub import Hub, eventually
from tests.servers.cluster import ServerCluster
from tests.servers.load import Load, Page, check_afterwards, kill_in_turn, submitting
from tests.servers.proxies import Cutter
from tests.servers.valkey_server import another_valkey
from trainhub_sdk import Client
from workspaces.servers.meetings import LOOK_EVERY_S, LOOKS
from workspaces.servers.server_registry import DEAD_AFTER_S

pytestmark = pytest.mark.slow


def test_runs_complete_with_all_their_bytes(cluster: ServerCluster, tmp_path: Path) -> None:
    load = Load(cluster, tmp_path / "starts")
    for _ in range(4):
        load.submit(lines=100)
    load.wait(60)
    load.check()


def test_runs_and_pages_survive_servers_that_are_killed(cluster: ServerCluster, tmp_path: Path) -> None:
    load = Load(cluster, tmp_path / "starts")
    with submitting(load, every_s=3) as pages:
        kill_in_turn(cluster, times=2, every_s=8)
    check_afterwards(load, pages)


def test_a_server_that_is_stopped_for_a_while_loses_nothing(cluster: ServerCluster, tmp_path: Path) -> None:
    load = Load(cluster, tmp_path / "starts")
    runs = [load.submit(lines=400) for _ in range(2)]
    eventually(lambda: all(load.log(run) for run in runs), 60, "both write")
    web = cluster.servers[1].pid("web")
    os.kill(web, signal.SIGSTOP)
    try:
        time.sleep(DEAD_AFTER_S + 2)
        assert "silent for" in cluster.hub.manage("servers").stdout
    finally:
        os.kill(web, signal.SIGCONT)
    load.wait(120)
    load.check()


def test_connections_that_are_cut_every_few_seconds_cost_nothing(
    cluster: ServerCluster, tmp_path: Path
) -> None:
    load = Load(cluster, tmp_path / "starts")
    cutter = Cutter(cluster.port, after_s=2)
    cutter.start()
    url = f"http://127.0.0.1:{cutter.port}"
    try:
        cluster.add_agent(f"cut-{cutter.port}", url)
        eventually(lambda: len(cluster.ready_nodes()) == len(cluster.agents), 60, "it joins")
        # More than the other nodes have room for.
        pages = [Page(load, load.submit(lines=400), url) for _ in range(3)]
        for page in pages:
            page.start()
        load.wait(180)
        load.check()
        assert [page.close() for page in pages] == [load.log(page.run_id) for page in pages]
        assert cutter.cut > 3
    finally:
        cluster.agents.pop().stop()
        cutter.close()


def test_uploads_and_downloads_go_on_over_connections_that_are_cut(
    cluster: ServerCluster, tmp_path: Path
) -> None:
    # In the middle of a piece, of which each has 8 MiB.
    cutter = Cutter(cluster.port, after_bytes=20 * 2**20)
    cutter.start()
    content = os.urandom(2**20) * 96
    (tmp_path / "weights.bin").write_bytes(content)
    try:
        client = Client(f"http://127.0.0.1:{cutter.port}", cluster.hub.owner_token())
        version = client.upload_model("cut", tmp_path / "weights.bin")
        uploads = cutter.cut
        (copy,) = version.download(tmp_path / "copy")
        assert hashlib.sha256(copy.read_bytes()).digest() == hashlib.sha256(content).digest()
        assert 0 < uploads < cutter.cut
    finally:
        cutter.close()


def test_a_page_at_any_server_sees_the_samples_of_every_node(cluster: ServerCluster) -> None:
    headers = {"Authorization": f"Bearer {cluster.hub.owner_token()}"}
    for server in cluster.servers:
        for node in (agent.name for agent in cluster.agents):
            url = f"ws://127.0.0.1:{server.port}/ws/telemetry/?nodes={node}"
            with connect(url, additional_headers=headers, proxy=None) as socket:
                samples = [json.loads(socket.recv(timeout=20)) for _ in range(3)]
            assert {(item["type"], item["node"]) for item in samples} == {("telemetry.sampled", node)}


def test_one_worker_leads_and_another_takes_over(cluster: ServerCluster) -> None:
    def leaders() -> list[str]:
        lines = cluster.hub.manage("servers").stdout.splitlines()
        return [line.split()[0] for line in lines if "runs the periodic tasks" in line and "lives" in line]

    (leader,) = eventually(leaders, 30, "one leads")
    server = next(server for server in cluster.servers if server.name == leader)
    os.kill(server.pid("worker"), signal.SIGSTOP)
    try:
        (other,) = eventually(lambda: [name for name in leaders() if name != leader], 30, "another leads")
    finally:
        os.kill(server.pid("worker"), signal.SIGCONT)
    time.sleep(3)
    assert leaders() == [other]


def test_a_second_hub_on_the_database_says_so_and_does_not_start(
    cluster: ServerCluster, tmp_path: Path
) -> None:
    def refusal(data: Path, **settings: str) -> str:
        hub = Hub(data, **{**cluster.settings, "NODE_DIR": str(tmp_path / "node"), **settings})
        hub.is_new = True
        hub.console = tmp_path / "console"
        with pytest.raises(AssertionError, match="TrainHub stopped"):
            hub.start()
        return hub.said()

    assert f"belongs to the data folder {cluster.data}" in refusal(tmp_path / "other")
    assert "runs on this database already: server web-0 and server web-1" in refusal(cluster.data)
    further = cluster.further("web-9", SECRET_KEY="another")
    with pytest.raises(AssertionError, match="SECRET_KEY is another one"):
        further.start()
    assert cluster.hub.answers()


def test_a_server_that_was_given_other_settings_does_not_start_or_is_shown(
    cluster: ServerCluster, tmp_path: Path
) -> None:
    def refusal(**settings: str) -> str:
        further = cluster.further("web-9", **settings)
        with pytest.raises(AssertionError, match="TrainHub stopped"):
            further.start()
        return further.said()

    with another_valkey() as other:
        said = refusal(REDIS_URL=other)
        assert "REDIS_URL leads elsewhere than that of server web-" in said
    said = refusal(PUBLIC_URL="http://127.0.0.1:1")
    assert "API_URL and PUBLIC_URL of this server and of server web-" in said
    further = cluster.further("web-9", PURGE_DAYS="3")
    try:
        further.start()
        listed = cluster.hub.manage("servers").stdout
        assert "PURGE_DAYS of server web-9 is another one than that of server web-0." in listed
        assert "Give all servers the same PURGE_DAYS" in listed
        checked = cluster.hub.manage("check", "--deploy").stderr
        assert "PURGE_DAYS of server web-9" in checked
        with cluster.hub.client() as client:
            system = client.get("/api/v1/system/").raise_for_status().json()
        assert [(item["setting"], item["server"]) for item in system["server_warnings"]] == [
            ("PURGE_DAYS", "web-9")
        ]
        assert {item["name"] for item in system["servers"] if item["is_leader"]} < {
            item["name"] for item in system["servers"]
        }
        # Long enough for three looks at each other's marks.
        time.sleep(LOOKS * LOOK_EVERY_S + 3)
        warnings = cluster.hub.manage("servers").stdout.count(" leads elsewhere ")
        assert warnings == 0
    finally:
        further.stop()


def test_a_server_whose_clock_is_a_minute_off_does_not_start_or_is_shown(
    cluster: ServerCluster, tmp_path: Path
) -> None:
    behind = tmp_path / "seconds_behind"
    build_clock(tmp_path / "clock.so")
    clock = {"LD_PRELOAD": str(tmp_path / "clock.so"), "SECONDS_BEHIND": str(behind)}
    late = cluster.further("web-late", **clock)
    phrase = "60 s behind that of the database"

    def shown() -> list[str]:
        with cluster.hub.client() as client:
            system = client.get("/api/v1/system/").raise_for_status().json()
        return [warning["text"] for warning in system["server_warnings"]]

    behind.write_text("60")
    with pytest.raises(AssertionError, match=f"The clock of this machine is {phrase}"):
        late.start()
    behind.write_text("0")
    try:
        late.start()
        assert shown() == []
        # It drifts away while it runs.
        behind.write_text("60")
        clocks = [f"The clock of server web-late ({part}) is {phrase}." for part in ("web", "worker")]
        eventually(lambda: shown() == clocks, 20, "both parts are shown")
        assert clocks[0] in cluster.hub.manage("servers").stdout
        checked = cluster.hub.manage("check", "--deploy").stderr
        assert clocks[0] in checked
        assert "timedatectl set-ntp true" in checked
        with cluster.hub.client() as client:
            scraped = client.get("/metrics").text
        assert re.search(
            r'trainhub_server_clock_offset_seconds\{part="web",server="web-late"\} -(59\.9|60\.)', scraped
        )
        behind.write_text("0")
        eventually(lambda: shown() == [], 20, "it is right again")
    finally:
        late.stop()


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [
        ("DATABASE_URL", "Several servers need PostgreSQL"),
        ("REDIS_URL", "set REDIS_URL"),
        ("SERVER_ADDRESS", "Set SERVER_ADDRESS"),
    ],
)
def test_a_further_server_says_which_setting_is_missing(
    cluster: ServerCluster, missing: str, remedy: str
) -> None:
    further = cluster.further("web-8")
    further.settings.pop(missing)
    with pytest.raises(AssertionError, match=remedy):
        further.start()
