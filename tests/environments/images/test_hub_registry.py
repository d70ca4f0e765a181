"""The hub as the registry of its nodes, in front of a real registry with a login."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from starlette.applications import Starlette

from clusters.models import Node
from environments.images.image_store import is_stored
from environments.models import EnvironmentVersion, ImageBlob
from jobs.byte_routes import routes
from jobs.models import Run
from jobs.node_api import claims
from tests.attacks.blobs.served import served
from tests.environments.images.container_images import MadeImage, make_image
from tests.environments.images.image_registry import LOGIN, ImageRegistry
from tests.environments.locks import put_secret, resolved_image
from tests.jobs.builders import Played, ended, launched, node
from tests.jobs.raw import opened, other_principal
from trainhub_launch.machine import CONTAINERS
from trainhub_launch.order import ImageRegistry as Route
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal
from workspaces.stored_files import blobs

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
IMAGE = make_image({"bin/start": b"#!/bin/sh\n", "data": bytes(3_000_000)})


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    served_registry = ImageRegistry(tmp_path_factory.mktemp("registry") / "registry")
    served_registry.push("train", "1", IMAGE)
    try:
        yield served_registry
    finally:
        served_registry.stop()


@dataclass(frozen=True)
class Ordered:
    """A claimed run in an image."""

    run: Run
    alpha: Played
    order: NodeOrder

    @property
    def route(self) -> Route:
        assert self.order.image_registry is not None
        return self.order.image_registry

    @property
    def folder(self) -> str:
        """The address of the image's manifests and blobs."""
        host, _, repository = self.route.address.partition("/")
        assert host == "hub:8000"
        return f"/v2/{repository}"

    @property
    def auth(self) -> tuple[str, str]:
        return "node", self.route.token


def place(who: Principal, image: str, hub: str = "http://hub:8000") -> Ordered:
    version = resolved_image(who, image, put_secret("team-registry", LOGIN))
    assert version.state == "locked", version.failure
    alpha = Played(node("alpha"))
    Node.objects.update(capabilities=f"secrets {CONTAINERS}")
    run = launched(who, environment={"name": "boxed"})
    order = claims.claim(alpha.node, run.pk, 1, alpha.nonce, [], hub)
    return Ordered(run, alpha, NodeOrder.from_json(json.loads(json.dumps(order.to_json()))))


@pytest.fixture
def ordered(who: Principal, registry: ImageRegistry) -> Ordered:
    return place(who, f"{registry.host}/train:1")


def test_the_order_says_what_to_pull_and_from_where(
    ordered: Ordered, registry: ImageRegistry, settings: Any
) -> None:
    image = ordered.order.environment.image
    assert image["reference"] == f"{registry.host}/train:1"
    assert image["pull"] == f"{registry.host}/train@{IMAGE.digest}"
    assert (image["digest"], image["working_dir"]) == (IMAGE.digest, "/work")
    assert ordered.route.token in ordered.order.masked
    # With a registry of the team's own, nodes do not come to the hub.
    settings.IMAGE_REGISTRY = "registry.example.org:5000/mirror"
    own = ordered.alpha.claim(ordered.run)
    assert own.image_registry is None
    assert own.environment.image["pull"] == f"registry.example.org:5000/mirror/train@{IMAGE.digest}"


def test_only_the_image_of_the_order_is_served(ordered: Ordered) -> None:
    @async_to_sync
    async def ask() -> None:
        async with opened() as client:
            nobody = await client.get("/v2/")
            assert (nobody.status_code, nobody.headers["www-authenticate"][:12]) == (401, "Basic realm=")
            assert nobody.json()["errors"][0]["code"] == "UNAUTHORIZED"
            assert (
                await client.get("/v2/", auth=("node", ordered.route.token[:-1] + "x"))
            ).status_code == 401
            assert (await client.get("/v2/", auth=ordered.auth)).status_code == 200
            manifest = await client.get(f"{ordered.folder}/manifests/{IMAGE.digest}", auth=ordered.auth)
            assert manifest.content == IMAGE.manifest
            assert manifest.headers["content-type"] == IMAGE.media_type
            assert manifest.headers["docker-content-digest"] == IMAGE.digest
            unknown = [
                f"{ordered.folder}/manifests/1",
                f"{ordered.folder}/blobs/sha256:{'0' * 64}",
                f"{ordered.folder}/blobs/{IMAGE.digest}",
                f"/v2/env/{2**31}/manifests/{IMAGE.digest}",
            ]
            for address in unknown:
                assert (await client.get(address, auth=ordered.auth)).status_code == 404, address
            bearer = {"Authorization": f"Bearer {ordered.route.token}"}
            assert (await client.get("/v2/", headers=bearer)).status_code == 200
            # It opens nothing else.
            for address in (
                f"/api/v1/snapshots/{ordered.run.spec['source']['id']}",
                f"/api/v1/runs/{ordered.run.pk}/logs/70_driver_log.txt",
                "/api/v1/node/config/",
            ):
                assert (await client.get(address, headers=bearer)).status_code == 401, address

    ask()


async def test_two_nodes_share_one_download_and_the_registry_may_go(who: Principal, tmp_path: Path) -> None:
    registry = ImageRegistry(tmp_path / "registry")
    try:
        registry.push("train", "1", IMAGE)
        ordered = await sync_to_async(place)(who, f"{registry.host}/train:1")
        layers = [digest for digest in IMAGE.blobs if digest != ordered_config(IMAGE)]
        async with opened() as client:
            large = layers[-1]
            address = f"{ordered.folder}/blobs/{large}"
            head = await client.head(address, auth=ordered.auth)
            assert head.headers["content-length"] == str(len(IMAGE.blobs[large]))
            both = await asyncio.gather(*(client.get(address, auth=ordered.auth) for _ in range(2)))
            assert [answer.content == IMAGE.blobs[large] for answer in both] == [True, True]
            assert both[0].headers["content-length"] == str(len(IMAGE.blobs[large]))
            downloads = registry.log.read_text().count(f'"GET /v2/train/blobs/{large} HTTP/1.1" 200')
            assert downloads == 1
            registry.stop()
            again = await client.get(address, auth=ordered.auth)
            assert again.content == IMAGE.blobs[large]
            # What no node has asked for is on the registry alone.
            missing = await client.get(f"{ordered.folder}/blobs/{layers[0]}", auth=ordered.auth)
            assert missing.status_code == 502
            assert "cannot be reached" in missing.json()["errors"][0]["message"]
            await sync_to_async(ordered.alpha.tell)(ordered.run, "running")
            await sync_to_async(ordered.alpha.tell)(ordered.run, "done", ended(0))
            over = await client.get(address, auth=ordered.auth)
            assert over.status_code == 401
    finally:
        registry.stop()


async def test_wrong_bytes_are_neither_kept_nor_sent_whole(who: Principal, tmp_path: Path) -> None:
    registry = ImageRegistry(tmp_path / "registry")
    try:
        image = make_image({"data": b"another layer" * 1000})
        registry.push("train", "1", image)
        ordered = await sync_to_async(place)(who, f"{registry.host}/train:1")
        large = [*image.blobs][-1]
        (stored,) = (tmp_path / "registry").rglob(f"sha256/*/{large[7:]}/data")
        stored.write_bytes(b"x" * len(image.blobs[large]))
        with served(Starlette(routes=routes)) as (host, port):
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
                # Before the answer has begun it can be an error; later the connection ends early.
                with suppress(httpx.RemoteProtocolError):
                    answer = await client.get(f"{ordered.folder}/blobs/{large}", auth=ordered.auth)
                    assert answer.status_code == 502
        assert not blobs.exists(large[7:])
    finally:
        registry.stop()


async def test_the_layers_of_another_workspace_are_fetched_again(
    who: Principal, registry: ImageRegistry
) -> None:
    """A manifest may name any SHA-256: that the hub has its bytes is no permission."""
    ordered = await sync_to_async(place)(who, f"{registry.host}/train:1")
    large = [*IMAGE.blobs][-1]
    async with opened() as client:
        await client.get(f"{ordered.folder}/blobs/{large}", auth=ordered.auth)

    def others() -> list[bool]:
        version = EnvironmentVersion.objects.get()
        other = other_principal().workspace
        return [is_stored(version, place, large[7:], 1) for place in (who.workspace, other)]

    assert await sync_to_async(others)() == [True, False]
    assert await sync_to_async(ImageBlob.objects.count)() == 3


@pytest.mark.slow
def test_podman_and_skopeo_pull_it(who: Principal, registry: ImageRegistry, tmp_path: Path) -> None:
    with served(Starlette(routes=routes)) as (host, port):
        ordered = place(who, f"{registry.host}/train:1", f"http://{host}:{port}")
        code = base64.b64encode(":".join(ordered.auth).encode()).decode()
        logins = tmp_path / "auth.json"
        logins.write_text(json.dumps({"auths": {f"{host}:{port}": {"auth": code}}}))
        name = f"{ordered.route.address}@{IMAGE.digest}"
        layout = tmp_path / "layout"
        _call(
            "skopeo", "copy", "--preserve-digests", "--src-tls-verify=false", f"--authfile={logins}",
            f"docker://{name}", f"oci:{layout}:1",
        )  # fmt: skip
        stored = {f"sha256:{path.name}" for path in (layout / "blobs" / "sha256").iterdir()}
        assert stored == {IMAGE.digest, *IMAGE.blobs}
        # Not below `tmp_path`: podman takes no long path.
        with tempfile.TemporaryDirectory(prefix="th-") as short:
            podman = ("podman", f"--root={short}/images", f"--runroot={short}/run", "--storage-driver=vfs")
            _call(*podman, "pull", "--tls-verify=false", f"--authfile={logins}", name)
            image_id = _call(*podman, "image", "inspect", "--format={{.Id}}", name).strip()
        assert image_id == ordered_config(IMAGE).removeprefix("sha256:")


def _call(*argv: str) -> str:
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def ordered_config(image: MadeImage) -> str:
    return str(json.loads(image.manifest)["config"]["digest"])
