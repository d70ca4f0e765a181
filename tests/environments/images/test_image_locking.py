"""What a version of kind `image` learns of a real registry with a login, and what it says where it cannot."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from environments.images import connection
from environments.images.image_lock import read_image_lock
from environments.models import ImageBlob
from tests.environments.images.container_images import make_image, make_index
from tests.environments.images.image_registry import LOGIN, ImageRegistry
from tests.environments.locks import put_secret, resolved_image
from tests.people import api_client
from workspaces.access import Principal
from workspaces.models import SecretUse
from workspaces.secrets import store
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db
CUDA = ("PATH=/bin", "CUDA_VERSION=12.8.1", "NVIDIA_VISIBLE_DEVICES=all")
AMD64 = make_image({"bin/start": b"#!/bin/sh\n", "data": b"x" * 5000}, environment=CUDA)
ARM = make_image({"bin/start": b"arm"}, architecture="arm64")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    served = ImageRegistry(tmp_path_factory.mktemp("registry") / "registry")
    served.push("train", "1", AMD64)
    served.push("train", "many", make_index(("arm64", ARM), ("amd64", AMD64)))
    served.push("train", "arm", make_index(("arm64", ARM)))
    served.push("train", "alone", ARM)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def secret(who: Principal) -> str:
    return put_secret("team-registry", LOGIN)


@pytest.mark.parametrize("tag", ["1", "many"])
def test_the_manifest_for_the_nodes_is_fixed(
    who: Principal, registry: ImageRegistry, secret: str, tag: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    version = resolved_image(who, f"{registry.host}/train:{tag}", secret)
    assert version.state == "locked", version.failure
    lock = read_image_lock(version.lock)
    assert (lock.digest, lock.architecture) == (AMD64.digest, "amd64")
    assert lock.blobs.keys() == AMD64.blobs.keys()
    assert lock.size == sum(len(data) for data in AMD64.blobs.values()) - lock.config.size
    assert (lock.software, lock.is_for_gpus) == ({"CUDA": "12.8.1"}, True)
    assert (lock.working_dir, lock.entrypoint) == ("/work", ("/bin/start",))
    # Nodes need both although they come from nowhere else once the registry is gone.
    for digest in (lock.digest, lock.config.digest):
        assert blobs.exists(digest.removeprefix("sha256:"))
    assert ImageBlob.objects.filter(version=version).count() == 2
    use = SecretUse.objects.get()
    assert (use.kind, use.subject) == ("environment", str(version))
    assert "sesame" not in caplog.text + version.lock + version.source


def test_the_node_gets_a_digest_and_no_tag(who: Principal, registry: ImageRegistry, secret: str) -> None:
    version = resolved_image(who, f"{registry.host}/train@{AMD64.digest}", secret)
    assert version.state == "locked", version.failure
    assert json.loads(version.lock)["digest"] == AMD64.digest


@pytest.mark.parametrize(
    ("image", "login", "words"),
    [
        ("train:2", LOGIN, "has no image train with the tag 2"),
        ("nothing:1", LOGIN, "has no image nothing with the tag 1"),
        ("train:1", "", "wants a login for train, or has no such image. Check the name; for a private image"),
        ("train:1", "team:wrong", "refuses the login in the secret team-registry for train"),
        ("train:1", "no-colon", "its value must be user:password"),
        ("train:arm", LOGIN, "is not there for linux/amd64, which the nodes need; there is linux/arm64."),
        ("train:alone", LOGIN, "is for linux/arm64, and the nodes need linux/amd64"),
    ],
)
def test_a_failure_says_what_to_do(
    who: Principal, registry: ImageRegistry, image: str, login: str, words: str
) -> None:
    name = put_secret("team-registry", login) if login else ""
    version = resolved_image(who, f"{registry.host}/{image}", name)
    assert version.state == "failed"
    assert words in version.failure
    assert "sesame" not in version.failure


def test_a_personal_secret_is_none_of_the_workspace(who: Principal, registry: ImageRegistry) -> None:
    put_secret("other", LOGIN)
    store.put(who, "mine", LOGIN, store.PERSON)
    version = resolved_image(who, f"{registry.host}/train:1", "mine")
    assert "There is no secret mine of the workspace" in version.failure


class TestHosts:
    def test_of_this_machine_must_be_listed_once_others_use_the_hub(
        self, who: Principal, registry: ImageRegistry, settings: Any
    ) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        version = resolved_image(who, f"{registry.host}/train:1")
        assert "can add a host of this machine with IMAGE_REGISTRY_HOSTS" in version.failure
        settings.IMAGE_REGISTRY_HOSTS = ["127.0.0.1"]
        assert "wants a login" in resolved_image(who, f"{registry.host}/train:1").failure

    @pytest.mark.parametrize(
        ("image", "words"),
        [
            ("169.254.169.254/latest/meta-data:1", "is at an address that the hub does not connect to"),
            ("no-such-host.invalid/x:1", "The name no-such-host.invalid of the registry is not known"),
            ("127.0.0.1:9/x:1", "cannot be reached"),
        ],
    )
    def test_that_cannot_be_asked(self, who: Principal, image: str, words: str) -> None:
        assert words in resolved_image(who, image).failure

    def test_that_are_not_listed(self, who: Principal, settings: Any) -> None:
        settings.IMAGE_REGISTRY_HOSTS = ["registry.example.org"]
        failure = resolved_image(who, "python:3.12").failure
        assert "docker.io is not one of the registries" in failure
        assert "registry.example.org" in failure

    def test_that_are_silent(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "READ_S", 0.2)
        monkeypatch.setattr(connection, "CONNECT_S", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as server:
            failure = resolved_image(who, f"127.0.0.1:{server.getsockname()[1]}/x:1").failure
        assert "does not answer" in failure

    def test_whose_certificate_is_not_trusted(
        self, who: Principal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate, key = tmp_path / "registry.pem", tmp_path / "registry.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        served = ImageRegistry(tmp_path / "registry", certificate=certificate, key=key)
        try:
            version = resolved_image(who, f"{served.host}/train:1")
            assert "does not trust the certificate of the registry" in version.failure
            assert "(self-signed certificate)" in version.failure
            # The remedy that it names.
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            connection.trust.cache_clear()
            assert "wants a login" in resolved_image(who, f"{served.host}/train:1").failure
        finally:
            connection.trust.cache_clear()
            served.stop()


class TestApi:
    def test_makes_one_and_shows_its_lock(self, who: Principal, registry: ImageRegistry, secret: str) -> None:
        client: Client = api_client(who.user)
        body = {
            "name": "boxed",
            "kind": "image",
            "image": f"{registry.host}/train:1",
            "registry_secret": secret,
        }
        answer = client.post("/api/v1/environments/", body, "application/json")
        assert (answer.status_code, answer.json()["state"]) == (201, "resolving")
        assert answer.json()["image"] == body["image"]
        assert answer.json()["registry_secret"] == secret

    @pytest.mark.parametrize(
        ("fields", "field", "words"),
        [
            ({}, "image", "is required"),
            ({"image": "https://ghcr.io/x"}, "image", "leave out https:// and write ghcr.io/x"),
            ({"image": "Team/x y"}, "image", "is no name of an image"),
            ({"image": "python:"}, "image", "is no tag"),
            ({"image": "python@sha256:12"}, "image", "64 hexadecimal digits"),
            ({"image": "ghcr.io/Team/x"}, "image", "'Team' has capitals"),
            ({"image": "x", "registry_secret": "a b"}, "registry_secret", "the name of a secret"),
            ({"image": "x", "python": "3.11"}, "python", ""),
        ],
    )
    def test_names_the_field(self, who: Principal, fields: dict[str, str], field: str, words: str) -> None:
        body = {"name": "boxed", "kind": "image", **fields}
        answer = api_client(who.user).post("/api/v1/environments/", body, "application/json")
        assert answer.status_code == 400
        assert [(item["field"], words in item["message"]) for item in answer.json()["errors"]] == [
            (field, True)
        ]
