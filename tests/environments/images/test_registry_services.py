"""Registries with a service for logins and a storage of their own, as the large ones are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from environments.images.reference import parse_reference
from environments.images.registry_client import RegistryClient
from environments.images.registry_error import RegistryError
from environments.images.registry_login import login_of
from tests.environments.images.container_images import make_image
from tests.environments.images.image_registry import LOGIN, ImageRegistry
from tests.environments.images.registry_services import ISSUER, SERVICE, RegistryServices

IMAGE = make_image({"data": b"x" * 1000})
LAYER = [*IMAGE.blobs][-1]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServices]:
    with RegistryServices(tmp_path_factory.mktemp("services"), LOGIN).serving() as served:
        yield served


@pytest.fixture(scope="module")
def host(services: RegistryServices) -> Iterator[str]:
    """The registry; the image was pushed before it got these services."""
    folder = services.data.parent
    plain = ImageRegistry(folder)
    plain.push("team/train", "1", IMAGE)
    plain.stop()
    token = {
        "realm": f"{services.url}/token",
        "service": SERVICE,
        "issuer": ISSUER,
        "rootcertbundle": str(services.certificate),
    }
    storage = [{"name": "redirect", "options": {"baseurl": services.url}}]
    registry = ImageRegistry(folder, more={"auth": {"token": token}, "middleware": {"storage": storage}})
    try:
        yield registry.host
    finally:
        registry.stop()


def client_of(host: str, login: str = LOGIN) -> RegistryClient:
    return RegistryClient(parse_reference(f"{host}/team/train:1"), login_of(login, "ours") if login else None)


def test_a_token_is_asked_for_and_the_storage_sees_no_login(host: str, services: RegistryServices) -> None:
    client = client_of(host)
    assert client.manifest("1").digest == IMAGE.digest
    assert client.blob(LAYER, 10**6) == IMAGE.blobs[LAYER]
    assert services.scopes[-1] == "repository:team/train:pull"
    assert services.storage_logins == [None]
    with pytest.raises(RegistryError, match="sent more than 10 bytes"):
        client.blob(LAYER, 10)


@pytest.mark.parametrize(
    ("login", "words"),
    [("team:wrong", "refuses the login in the secret ours"), ("", "wants a login for team/train")],
)
def test_a_wrong_login_is_refused_by_the_service(host: str, login: str, words: str) -> None:
    with pytest.raises(RegistryError, match=words):
        client_of(host, login).manifest("1")


def test_no_storage_is_asked_at_a_forbidden_address(host: str, settings: Any) -> None:
    settings.IS_ON_LOOPBACK_ONLY = False
    settings.IMAGE_REGISTRY_HOSTS = ["127.0.0.1"]
    settings.OWN_PORTS = {}
    client = client_of(host)
    client.manifest("1")
    # The registry is listed; its storage, at the same name here, would be one of the hub's own ports.
    settings.OWN_PORTS = {port for port in range(1, 65536) if f":{port}" not in host}
    with pytest.raises(RegistryError, match="is at an address that the hub does not connect to"):
        client.blob(LAYER, 10**6)
