"""The compose file, with stand-ins of Debian's packages for the images that only a registry has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.caching import CACHE, alone
from tests.hub import PROJECT, eventually, free_port
from tests.releases import outer_node, podman
from tests.releases.podman import Podman
from tests.stores.s3_signatures import KEY_ID, SECRET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root"),
]
REQUIREMENT = "podman-compose>=1.5,<2"
FILES = PROJECT / "packaging" / "compose"
STANDINS = Path(__file__).parent / "standins"
HUB_IMAGE, STANDIN_IMAGE = "localhost/trainhub-hub:test", "localhost/trainhub-standins:test"
HOST = "localhost"
# What the entry points of the official images do by themselves.
COMMANDS = """\
services:
  postgresql: {command: ["start-postgresql"]}
  proxy: {command: ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]}
  s3:
    command: ["python3", "-c", "from tests.stores.s3_server import S3Server; import threading;
      store = S3Server('0.0.0.0', 9000); threading.Event().wait()"]
    working_dir: /standin
    volumes: ["{project}/tests/stores:/standin/tests/stores:ro"]
"""
AUTHORITY = "/root/.local/share/caddy/pki/authorities/local/root.crt"


@dataclass(frozen=True)
class Composition:
    engine: Podman
    folder: Path
    name: str
    port: int

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    def compose(self, *words: str) -> None:
        images = dict.fromkeys(("PROXY_IMAGE", "POSTGRESQL_IMAGE", "VALKEY_IMAGE", "S3_IMAGE"), STANDIN_IMAGE)
        own = {"TRAINHUB_IMAGE": HUB_IMAGE, "TRAINHUB_HTTPS": f"127.0.0.1:{self.port}", **images}
        command = [podman_compose(), "-p", self.name, "-f", "compose.yaml", "-f", "standins.yaml", *words]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.engine.variables, **own},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def hub(self, *words: str) -> str:
        return self.engine("exec", f"{self.name}_hub_1", "trainhub-hub", *words).stdout.strip()


def podman_compose() -> str:
    place = CACHE / "podman-compose"
    with alone("podman-compose"):
        if not (place / ".complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True, timeout=240)
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, REQUIREMENT], check=True, timeout=300)
            (place / ".complete").touch()
    return str(place / "bin" / "podman-compose")


@pytest.fixture(scope="module")
def composition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composition]:
    engine = podman.prepared()
    release = tmp_path_factory.mktemp("release") / "dist"
    subprocess.run([sys.executable, f"{PROJECT}/packaging/make_release.py", str(release)], check=True)
    podman.hub_image(engine, release, HUB_IMAGE)
    engine.build(STANDIN_IMAGE, STANDINS / "Containerfile", STANDINS, BASE=podman.BASE)
    folder = tmp_path_factory.mktemp("compose") / "files"
    shutil.copytree(FILES, folder)
    (folder / "standins.yaml").write_text(COMMANDS.replace("{project}", str(PROJECT)))
    # The access key of the stand-in.
    (folder / "secrets").mkdir()
    (folder / "secrets" / "s3-user").write_text(KEY_ID)
    (folder / "secrets" / "s3-password").write_text(SECRET)
    subprocess.run([str(folder / "make-secrets"), HOST, "--s3"], check=True)
    made = Composition(engine.with_bridges(), folder, f"trainhub-test-{os.getpid()}", free_port())
    try:
        made.compose("up", "-d")
        with outer_node.client(made.url) as client:
            eventually(lambda: is_ready(client), 180, "the hub answers through the proxy")
        yield made
    finally:
        made.compose("down", "-v", "-t", "60")


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def test_a_first_run_completes(composition: Composition, tmp_path: Path) -> None:
    token = composition.hub("token", "create", "admin").split()[-1]
    words = composition.hub("node", "token", "outer", "--cluster", "lab").split()
    join_token = next(word for word in words if word.startswith("thj_"))
    authority = tmp_path / "root.crt"
    authority.write_text(composition.engine("exec", f"{composition.name}_proxy_1", "cat", AUTHORITY).stdout)
    # As if it were among the authorities of the machine.
    settings = {"SSL_CERT_FILE": str(authority)}
    with (
        outer_node.client(composition.url, token, authority) as client,
        outer_node.joined(composition.url, join_token, tmp_path / "node", **settings),
    ):
        assert outer_node.complete_a_run(client, "print('composed')") == b"composed\n"


def test_the_hub_is_on_postgresql_and_backs_it_up(composition: Composition) -> None:
    code = "from django.db import connection; print(connection.vendor)"
    assert composition.hub("shell", "--no-imports", "--command", code) == "postgresql"
    composition.hub("backup", "/var/lib/trainhub/backups")
    assert "is whole" in composition.hub("backup", "--verify", "/var/lib/trainhub/backups")


def test_its_files_are_in_the_bucket_that_it_has_made(composition: Composition) -> None:
    assert composition.hub("blobs", "status").splitlines()[0] == "BLOB_STORE: s3://trainhub"
    eventually(lambda: "waiting" not in composition.hub("blobs", "status"), 60, "all files are uploaded")
    assert "in the store" in composition.hub("blobs", "status")
    composition.hub("blobs", "verify", "--read")


def test_only_the_proxy_can_be_reached_and_no_secret_is_in_a_variable(composition: Composition) -> None:
    names = composition.engine("ps", "--format", "{{.Names}} {{.Ports}}").stdout.splitlines()
    published = [line.split()[0] for line in names if "->" in line and composition.name in line]
    assert published == [f"{composition.name}_proxy_1"]
    password = (composition.folder / "secrets" / "database-password").read_text()
    for part in ("hub", "postgresql", "valkey", "proxy", "s3"):
        inspected = composition.engine("inspect", f"{composition.name}_{part}_1").stdout
        assert password not in inspected
        assert SECRET not in inspected


def test_without_the_option_files_stay_on_the_disk(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "files")
    subprocess.run([str(tmp_path / "files" / "make-secrets"), HOST], check=True)
    done = subprocess.run(
        [podman_compose(), "config"], cwd=tmp_path / "files", capture_output=True, text=True, check=True
    )
    assert "BLOB_STORE: disk" in done.stdout

    assert "image: docker.io/minio" not in done.stdout
