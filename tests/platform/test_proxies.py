"""The proxies of docs/network.md with a real hub behind them: live updates, uploads, ranges, addresses."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import ssl
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.hub import PROJECT, Hub, eventually, free_port
from tests.journeys.runs import Runs
from trainhub import certificates
from trainhub.up.children import end_with_parent
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.transfers import download

pytestmark = pytest.mark.slow
NAME = "localhost"
SCRIPT = """
import time
open("outputs/words.txt", "w").write("first second")
for number in range(20):
    print(number, flush=True)
    time.sleep(0.1)
"""


class ProxiedHub(Hub):
    """A hub that clients reach by a proxy at `public_port`."""

    public_port = 0

    @property
    def public_url(self) -> str:
        return f"https://{NAME}:{self.public_port}"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proxy") / "tls"
    certificates.ensure(folder, [NAME, "127.0.0.1"])
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedHub]:
    hub = ProxiedHub(tmp_path_factory.mktemp("proxied") / "data", OPEN="1")
    hub.public_port = free_port()
    hub.url = f"http://127.0.0.1:{hub.port}"
    hub.settings |= {"TLS": "0", "TRUSTED_PROXIES": "127.0.0.1", "PUBLIC_URL": hub.public_url}
    hub.trusted = lambda: True  # type: ignore[method-assign]
    try:
        hub.start()
        yield hub
        hub.cancel_all()
    finally:
        hub.stop()


def example(language: str, hub: ProxiedHub, tls: Path) -> str:
    """The example of the document, with the test's names, ports and files."""
    text = (PROJECT / "docs" / "network.md").read_text()
    (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    replacements = {
        "/etc/ssl/hub.pem": str(tls / "server.pem"),
        "/etc/ssl/hub-key.pem": str(tls / "server-key.pem"),
        "hub.example.org:443": f"{NAME}:{hub.public_port}",
        "listen 443 ssl": f"listen 127.0.0.1:{hub.public_port} ssl",
        "hub.example.org": NAME,
        "127.0.0.1:8000": f"127.0.0.1:{hub.port}",
    }
    for old, new in replacements.items():
        block = block.replace(old, new)
    return str(block)


def nginx(hub: ProxiedHub, tls: Path, folder: Path) -> list[str]:
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{example('nginx', hub, tls)}}}\n"
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(folder / "nginx.conf")]


def caddy(hub: ProxiedHub, tls: Path, folder: Path) -> list[str]:
    # The administrator's port and the redirect from port 80 are the machine's, not the test's.
    head = f"{{\n    admin off\n    auto_https disable_redirects\n    storage file_system {folder}\n}}\n"
    (folder / "Caddyfile").write_text(head + example("caddyfile", hub, tls))
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def through_proxy(
    request: pytest.FixtureRequest, hub: ProxiedHub, tls: Path, tmp_path: Path
) -> Iterator[httpx.Client]:
    """A program with the owner's token that reaches the hub by the proxy."""
    log = (tmp_path / "output").open("wb")
    process = subprocess.Popen(
        request.param(hub, tls, tmp_path),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=log,
        stderr=log,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
    )
    headers = {"Authorization": f"Bearer {hub.owner_token()}"}
    trusted = ssl.create_default_context(cafile=tls / "ca.pem")
    try:
        with httpx.Client(base_url=hub.public_url, headers=headers, timeout=30, verify=trusted) as client:
            eventually(lambda: process.poll() is not None or answers(client), 20, "the proxy answers")
            assert process.poll() is None, (tmp_path / "output").read_text()
            yield client
    finally:
        process.terminate()
        process.wait(10)
        log.close()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").is_success
    except httpx.HTTPError:
        return False


def test_everything_passes(hub: ProxiedHub, through_proxy: httpx.Client, tls: Path) -> None:
    runs = Runs(hub)
    runs.client = through_proxy
    large = os.urandom(12 * 2**20)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as source:
        source.writestr("main.py", SCRIPT)
        source.writestr("large.bin", large)
    upload = through_proxy.post(
        "/api/v1/snapshots/", files={"file": ("source.zip", archive.getvalue(), "application/zip")}
    )
    assert upload.status_code == httpx.codes.CREATED
    spec = {"source": {"type": "snapshot", "id": upload.json()["id"]}, "script": "main.py"}
    run = runs.submit({**spec, "experiment": "proxies"})
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    address = f"wss://{NAME}:{hub.public_port}/ws/runs/{run}/"
    token = {"Authorization": through_proxy.headers["Authorization"]}
    with connect(address, ssl=context, additional_headers=token, proxy=None) as socket:
        # Live: the message comes long before the run ends.
        assert "type" in socket.recv(timeout=30)
        assert runs.detail(run)["state"] != "Completed"
    assert runs.ended(run)["state"] == "Completed"
    output = f"/api/v1/runs/{run}/outputs/words.txt"
    part = through_proxy.get(output, headers={"Range": "bytes=0-4", "Accept-Encoding": "identity"})
    assert (part.status_code, part.content) == (httpx.codes.PARTIAL_CONTENT, b"first")


def test_the_hub_knows_the_client_and_believes_no_header_of_it(
    hub: ProxiedHub, through_proxy: httpx.Client, tls: Path
) -> None:
    begun = through_proxy.post(
        "/api/v1/device-login/",
        json={"name": "behind a proxy"},
        headers={"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"},
    ).json()
    assert begun["verification_uri"] == f"{hub.public_url}/device/"
    address = f"/device/?code={begun['user_code']}"
    page = sign_in(hub, tls).get(address).text
    assert "127.0.0.1" in page
    assert "203.0.113.9" not in page


def sign_in(hub: ProxiedHub, tls: Path) -> httpx.Client:
    """A browser's session, begun by the proxy: its cookies are for TLS only."""
    trusted = ssl.create_default_context(cafile=tls / "ca.pem")
    browser = httpx.Client(base_url=hub.public_url, verify=trusted, timeout=30)
    browser.get("/sign-in/").raise_for_status()
    token = next(value for name, value in browser.cookies.items() if name.endswith("csrftoken"))
    form = {"username": "admin", "password": hub.password, "csrfmiddlewaretoken": token}
    answer = browser.post("/sign-in/", data=form, headers={"Referer": f"{hub.public_url}/sign-in/"})
    assert answer.status_code == httpx.codes.FOUND, answer.text
    assert all(cookie.secure for cookie in browser.cookies.jar)
    return browser


def test_one_that_passes_everything_is_not_blamed(hub: ProxiedHub, through_proxy: httpx.Client) -> None:
    published = through_proxy.get("/api/v1/system/").json()["processes"][0]["measured_at"]

    def later() -> bool:
        processes = through_proxy.get("/api/v1/system/").json()["processes"]
        return bool(processes[0]["measured_at"] > published)

    eventually(later, 30, "it has measured again")
    assert through_proxy.get("/api/v1/system/").json()["proxy_warnings"] == []


def careless_nginx(hub: ProxiedHub, tls: Path, folder: Path) -> list[str]:
    """Without what the document says, and with lines that remove more."""
    command = nginx(hub, tls, folder)
    file = folder / "nginx.conf"
    lines = [line for line in file.read_text().splitlines() if "X-Forwarded" not in line]
    removed = "".join(
        f'proxy_set_header {name} "";\n'
        for name in ("Range", "If-Range", "If-None-Match", "If-Modified-Since")
    )
    text = "\n".join(line for line in lines if "upgrade" not in line.lower() or "map" in line)
    text = re.sub(r"map .*?\}\n", "", text, flags=re.DOTALL)
    file.write_text(text.replace("proxy_buffering off;", f"proxy_buffering off;\n{removed}"))
    return command


@pytest.mark.parametrize("through_proxy", [careless_nginx], indirect=True, ids=["careless"])
def test_one_that_removes_headers_damages_nothing_and_is_named(
    hub: ProxiedHub, through_proxy: httpx.Client, tls: Path, tmp_path: Path
) -> None:
    runs = Runs(hub)
    runs.client = through_proxy
    run = runs.script('open("outputs/words.txt", "w").write("first second")')
    assert runs.ended(run)["state"] == "Completed"
    output = f"/api/v1/runs/{run}/outputs/words.txt"
    whole = through_proxy.get(output, headers={"Range": "bytes=0-4"})
    assert (whole.status_code, whole.content) == (httpx.codes.OK, b"first second")
    # What an interrupted download has left is not added to.
    sha256 = hashlib.sha256(b"first second").hexdigest()
    (tmp_path / f".words.txt.{sha256[:16]}.part").write_bytes(b"first")
    token = through_proxy.headers["Authorization"].removeprefix("Bearer ")
    api = ApiConnection(hub.public_url, token, str(tls / "ca.pem"))
    assert download(api, output, tmp_path / "words.txt", sha256).read_bytes() == b"first second"

    context = ssl.create_default_context(cafile=tls / "ca.pem")
    address = f"wss://{NAME}:{hub.public_port}/ws/runs/{run}/"
    owner = {"Authorization": through_proxy.headers["Authorization"]}
    with (
        pytest.raises(InvalidStatus),
        connect(address, ssl=context, additional_headers=owner, proxy=None),
    ):
        pass

    def warnings() -> dict[str, str]:
        items = through_proxy.get("/api/v1/system/").json()["proxy_warnings"]
        return {item["header"]: item["remedy"] for item in items}

    noticed = {"X-Forwarded-For", "X-Forwarded-Proto", "Upgrade"}
    eventually(lambda: warnings().keys() == noticed, 30, "the web server has published what it noticed")
    assert all("nginx" in remedy for remedy in warnings().values())
    checked = hub.manage("check", "--deploy").stderr
    assert all(f"without the header {name}: " in checked for name in noticed)
    assert (hub.data_dir / "logs" / "web.log").read_text().count("The proxy removes the header Upgrade") == 1
