"""A hub that was opened to other machines by its one switch, as these see it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import ssl
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import redis

from tests.hub import Hub, eventually, free_port
from tests.journeys.runs import Runs
from trainhub import addresses
from trainhub.up.console import Stop
from trainhub.up.preflight import check_certificate

pytestmark = pytest.mark.slow


AT_START: set[str] = set()


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = Hub(tmp_path_factory.mktemp("open") / "data", OPEN="1", BROKER_BIND=f"0.0.0.0:{free_port()}")
    running.settings["BIND"] = f"0.0.0.0:{running.port}"
    AT_START.update(addresses.local())
    try:
        yield running.start()
    finally:
        running.stop()


READS_ONLY = {"X-TrainHub-Capabilities": "wake-ups:read-only"}


def joined(hub: Hub, name: str) -> str:
    """The token of a machine that has just joined as `name`."""
    invited = hub.manage("node", "token", name, "--cluster", "gang").stdout.splitlines()[0]
    with hub.client("") as machine:
        return str(
            machine.post("/api/v1/node/enrol/", json={"token": invited, "name": name})
            .raise_for_status()
            .json()["token"]
        )


def broker_of(hub: Hub, token: str) -> redis.Redis:
    """As the node of `token` is told to reach it."""
    with hub.client(token) as machine:
        config = machine.get("/api/v1/node/config/", headers=READS_ONLY).raise_for_status().json()
    parts = urlsplit(config["broker_url"])
    assert (parts.scheme, parts.hostname) == ("rediss", "127.0.0.1")
    assert config["broker_ca"] == (hub.data_dir / "tls" / "ca.pem").read_text()
    return redis.Redis(
        host=str(parts.hostname),
        port=parts.port or 0,
        username=parts.username,
        password=parts.password,
        ssl=True,
        ssl_ca_data=config["broker_ca"],
    )


class TestTrust:
    def test_tells_how_to_add_a_machine(self, open_hub: Hub) -> None:
        assert "/clusters/add/" in open_hub.said()

    def test_answers_at_every_address_with_a_certificate_for_it(self, open_hub: Hub) -> None:
        # Networks of other tests come and go; the certificate is for those that were there at the start.
        for address in ("127.0.0.1", "localhost", *AT_START.intersection(addresses.local())):
            host = f"[{address}]" if ":" in address else address
            if ":" not in address:  # BIND is an IPv4 address
                assert httpx.get(
                    f"https://{host}:{open_hub.port}/healthz", verify=open_hub.trusted()
                ).is_success

    def test_nobody_else_vouches_for_it(self, open_hub: Hub) -> None:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{open_hub.url}/healthz", verify=ssl.create_default_context())

    def test_who_speaks_plain_http_gets_nothing_and_disturbs_nobody(self, open_hub: Hub) -> None:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{open_hub.port}/healthz", timeout=5)
        assert open_hub.answers()

    def test_cookies_travel_by_tls_alone(self, open_hub: Hub) -> None:
        with open_hub.client("") as browser:
            assert "Secure" in browser.get("/sign-in/").headers["set-cookie"]

    def test_this_machines_own_agent_trusts_it_too(self, open_hub: Hub) -> None:
        with open_hub.client() as client:
            eventually(
                lambda: [node["status"] for node in client.get("/api/v1/nodes/").json()].count("ready"), 30
            )
        eventually(lambda: "Connected to redis+socket://node." in open_hub.log("agent"), 30)


LOGS = """
import json, os, ssl, urllib.request

import mlflow

mlflow.log_metric("by mlflow", 0.25, step=1)
point = {"run_id": os.environ["TRAINHUB_RUN_ID"], "key": "by hand", "value": 0.5, "step": 1, "timestamp": 1}
request = urllib.request.Request(
    os.environ["TRAINHUB_URL"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(point).encode(),
    {"Authorization": "Bearer " + os.environ["TRAINHUB_TOKEN"], "Content-Type": "application/json"},
)
trusted = ssl.create_default_context(cafile=os.environ["TRAINHUB_CA_FILE"])
print(urllib.request.urlopen(request, context=trusted).status)
assert os.environ["MLFLOW_TRACKING_URI"].startswith("https://")
"""


class TestRuns:
    def test_log_to_it_by_a_client_that_trusts_nobody_else_for_it(
        self,
        open_hub: Hub,
        mlflow_python: str,
    ) -> None:
        runs = Runs(open_hub)
        source = {"type": "snapshot", "id": runs.snapshot(train_py=LOGS)}
        run = runs.submit({"source": source, "command": [mlflow_python, "train.py"]})
        assert runs.ended(run, 120)["state"] == "Completed", runs.log(run).decode()
        data = (
            runs.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run})
            .raise_for_status()
            .json()["run"]["data"]
        )
        assert {item["key"]: item["value"] for item in data["metrics"]} == {"by mlflow": 0.25, "by hand": 0.5}


class TestNode:
    def test_is_revoked_within_a_second_at_every_door(self, open_hub: Hub) -> None:
        token = joined(open_hub, "gone")
        with (
            broker_of(open_hub, token) as broker,
            open_hub.client(token) as machine,
            open_hub.client() as operator,
        ):
            assert broker.ping()
            assert operator.post("/api/v1/nodes/gone/revoke/").is_success
            eventually(lambda: machine.get("/api/v1/node/config/").status_code == httpx.codes.UNAUTHORIZED, 2)
            with pytest.raises(redis.ConnectionError):
                broker.ping()

    def test_has_its_way_to_the_broker_back_after_a_crash_of_the_broker(self, open_hub: Hub) -> None:
        token = joined(open_hub, "patient")
        broker = broker_of(open_hub, token)
        assert broker.ping()
        open_hub.kill("valkey")

        def is_back() -> bool:
            try:
                return bool(broker.ping())
            except redis.ConnectionError:
                return False

        eventually(is_back, 60)

    def test_an_unknown_user_gets_nowhere(self, open_hub: Hub) -> None:
        port = urlsplit(
            json.loads((open_hub.data_dir / "run" / "services.json").read_text())["node_broker_url"]
        ).port
        ca = open_hub.data_dir / "tls" / "ca.pem"
        stranger = redis.Redis(host="127.0.0.1", port=port or 0, ssl=True, ssl_ca_certs=str(ca))
        with pytest.raises(redis.ConnectionError):
            stranger.ping()

    def test_of_an_older_version_keeps_its_work_and_is_told_of_no_broker(self, open_hub: Hub) -> None:
        with open_hub.client(joined(open_hub, "older")) as machine:
            config = machine.get("/api/v1/node/config/").raise_for_status().json()
        assert (config["broker_url"], config["transport_options"]) == ("", {})
        eventually(lambda: "Node older runs an older version of the agent" in open_hub.log("web"), 10)


class TestPackage:
    def test_is_what_the_command_says_by_name_and_hash(self, open_hub: Hub) -> None:
        command = open_hub.manage("node", "token", "packaged").stdout.splitlines()[-1]
        found = re.search(
            r"'https://[^/]+(/api/v1/node/wheel/trainhub_node-[^']+\.whl)#sha256=([0-9a-f]{64})'", command
        )
        assert found, command
        with open_hub.client("") as machine:
            package = machine.get(found[1]).raise_for_status().content
        assert hashlib.sha256(package).hexdigest() == found[2]
        with zipfile.ZipFile(io.BytesIO(package)) as wheel:
            packages = {name.split("/")[0] for name in wheel.namelist() if name.endswith(".py")}
        assert packages == {"trainhub_launch", "trainhub_node"}


class TestOwnCertificate:
    @pytest.mark.parametrize("text", [None, "nonsense"])
    def test_one_that_cannot_be_used_is_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None
    ) -> None:
        for name in ("TLS_CERT_FILE", "TLS_KEY_FILE"):
            monkeypatch.setenv(name, str(tmp_path / name))
            if text:
                (tmp_path / name).write_text(text)
        monkeypatch.setenv("OPEN", "1")
        with pytest.raises(Stop, match="TLS_CERT_FILE="):
            check_certificate()

    def test_is_shown_instead_of_the_hubs_own(self, open_hub: Hub, tmp_path: Path) -> None:
        tls = open_hub.data_dir / "tls"
        own = Hub(
            tmp_path / "data",
            OPEN="1",
            TLS_CERT_FILE=str(tls / "server.pem"),
            TLS_KEY_FILE=str(tls / "server-key.pem"),
        )
        own.settings["PUBLIC_URL"] = own.url
        own.trusted = open_hub.trusted  # type: ignore[method-assign]
        try:
            own.start()
            assert own.answers()
            with own.client("") as machine:
                assert machine.get("/api/v1/node/ca/").status_code == httpx.codes.NOT_FOUND
            assert "." not in own.manage("node", "token", "alpha").stdout.splitlines()[0]
        finally:
            own.stop()
