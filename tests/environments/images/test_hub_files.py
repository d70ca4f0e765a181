"""The hub fetches the files of versions before a node needs them, from a real registry and a real index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from environments.models import EnvironmentVersion
from jobs.hub_files import fetch_orders, fetching, stored_parts
from jobs.hub_files.file_queue import LayerFile
from jobs.models import FileFetch
from tests.environments.images.container_images import make_image
from tests.environments.images.image_registry import LOGIN, ImageRegistry
from tests.environments.locks import put_secret, resolved, resolved_image
from tests.environments.package_index import PackageIndex
from tests.people import client_of, make_viewer
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.stored_files import blobs

# Files are fetched in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
IMAGE = make_image({"bin/start": b"#!/bin/sh\n", "data": bytes(3_000_000)})
LAYERS = [part["digest"] for part in json.loads(IMAGE.manifest)["layers"]]
PAGE, ADDRESS = "/environments/boxed/versions/1/", "/api/v1/environments/boxed/versions/1/"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[ImageRegistry]:
    served = ImageRegistry(tmp_path / "registry")
    served.push("train", "1", IMAGE)
    yield served
    served.stop()


@pytest.fixture
def version(who: Principal, registry: ImageRegistry) -> EnvironmentVersion:
    return resolved_image(who, f"{registry.host}/train:1", put_secret("team", LOGIN))


def fetch_all() -> None:
    fetch_orders.order_fetches()
    fetching.fetch_due()


def shown(browser: Client, address: str) -> str:
    """What the page says about the files, without its markup."""
    card = browser.get(address).content.decode().partition('id="en-hub"')[2].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", card).split())


def pulls(registry: ImageRegistry, layer: str) -> int:
    return registry.log.read_text().count(f'"GET /v2/train/blobs/{layer} HTTP/1.1" 200')


def test_layers_come_when_the_version_is_locked_and_the_registry_may_go(
    who: Principal, version: EnvironmentVersion, registry: ImageRegistry
) -> None:
    browser = client_of(who.user)
    text = shown(browser, PAGE)
    assert "0 of 2 layers (0 B of 2.9 MiB) are on the hub. It fetches the others now." in text
    fetch_orders.order_fetches()
    page = browser.get(f"{PAGE}hub-files/").content.decode()
    assert ("It fetches the others now." in page, 'hx-trigger="every 2s"' in page) == (True, True)
    # A worker that was killed after the first layer, a minute ago.
    first, second = stored_parts.missing_layers(version)
    assert LayerFile(version, first).fetch() == ""
    FileFetch.objects.update(state="fetching", attempts=1, reported_at=timezone.now())
    fetch_all()
    assert FileFetch.objects.get().state == "fetching"
    FileFetch.objects.update(reported_at=timezone.now() - timedelta(minutes=2))
    fetch_all()
    fetch = FileFetch.objects.get()
    assert (fetch.state, fetch.failure, fetch.attempts) == ("fetched", "", 2)
    assert [pulls(registry, layer) for layer in LAYERS] == [1, 1]
    registry.stop()
    assert all(blobs.exists(layer.removeprefix("sha256:")) for layer in LAYERS)
    assert "All 2 layers are on the hub (2.9 MiB)." in shown(browser, PAGE)
    assert "Fetch to the hub now" not in browser.get(PAGE).content.decode()
    assert browser.get(ADDRESS).json()["hub_files"] == {
        "files": 2,
        "stored": 2,
        "bytes": first.size + second.size,
        "stored_bytes": first.size + second.size,
        "state": "fetched",
        "failure": "",
    }


def test_a_failure_is_on_the_page_and_can_be_tried_again(
    who: Principal, version: EnvironmentVersion, registry: ImageRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_secret("team", "team:wrong")
    fetch_all()
    browser = client_of(who.user)
    text = shown(browser, PAGE)
    assert "refuses the login in the secret team for train." in text
    assert "The hub tries again when a node needs what is missing." in text
    assert EnvironmentVersion.objects.get().is_locked
    # Nobody asks for the same again by itself.
    fetch_all()
    assert FileFetch.objects.get().state == "failed"
    assert client_of(make_viewer()).post(f"{PAGE}fetch/").status_code == 403
    monkeypatch.setattr(fetching, "MIN_FREE_BYTES", 2**60)
    assert client_of(who.user).post(f"{ADDRESS}fetch/").json()["hub_files"]["state"] == "waiting"
    fetch_all()
    assert "too little for 2.9 MiB more. An operator frees space" in shown(browser, PAGE)
    monkeypatch.undo()
    put_secret("team", LOGIN)
    browser.post(f"{PAGE}fetch/")
    fetch_all()
    assert "All 2 layers are on the hub" in shown(browser, PAGE)
    assert AuditEvent.objects.filter(verb="environment.fetch", subject="boxed 1").count() == 2


def test_nothing_is_fetched_that_nodes_pull_elsewhere(
    who: Principal, version: EnvironmentVersion, settings: Any
) -> None:
    settings.IMAGE_REGISTRY = "registry.example.org"
    fetch_all()
    browser = client_of(who.user)
    assert (FileFetch.objects.exists(), browser.get(ADDRESS).json()["hub_files"]) == (False, None)
    answer = browser.post(f"{ADDRESS}fetch/")
    assert (answer.status_code, "no files that nodes get from the hub" in answer.content.decode()) == (
        400,
        True,
    )
    settings.IMAGE_REGISTRY, settings.FETCH_ENVIRONMENT_FILES = "", "NONE"
    fetch_all()
    assert "It fetches the others when a node first needs them." in shown(browser, PAGE)
    assert not FileFetch.objects.exists()


def test_packages_are_fetched_when_somebody_wants_it(
    who: Principal, index: PackageIndex, settings: Any, tmp_path: Path
) -> None:
    index.add("tinylib")
    resolved(who)
    fetch_all()
    assert not FileFetch.objects.exists()
    browser = client_of(who.user)
    page = "/environments/mine/versions/1/"
    assert "0 of 1 package" in shown(browser, page)
    wheel = index.folder / "tinylib-1.0-py3-none-any.whl"
    away = wheel.rename(tmp_path / wheel.name)
    browser.post(f"{page}fetch/")
    fetch_all()
    assert "tinylib-1.0-py3-none-any.whl could not be fetched: 127.0.0.1" in shown(browser, page)
    away.rename(wheel)
    browser.post(f"{page}fetch/")
    fetch_all()
    assert "The only package is on the hub" in shown(browser, page)
    FileFetch.objects.all().delete()
    settings.FETCH_ENVIRONMENT_FILES = "ALL"
    fetch_all()
    assert FileFetch.objects.get().state == "fetched"
