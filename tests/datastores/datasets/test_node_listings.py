"""Versions of datasets whose files a node lists, because the hub cannot: of folders, and of stores that are
read with the role of each node."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Node
from datastores.changes import create as create_datastore
from datastores.datasets import changes, file_list, listing
from datastores.models import DatasetVersion
from jobs.data_orders import data_lifecycle
from jobs.models import DataOrder
from jobs.node_listings import accepted_list, listing_progress
from jobs.node_orders import order_lifecycle
from jobs.node_orders.states import OrderState
from tests.datastores.played_orders import ALL, fail, prober, report_result, sent, taken_up
from tests.jobs.builders import Played, launched
from tests.people import api_client, client_of, make_contributor, principal_of
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import DATASETS, DOWNLOADS, INPUTS
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal

pytestmark = pytest.mark.django_db(transaction=True)
FILES = [ListedFile("a.bin", 1, "1-1", 1.5), ListedFile("b.bin", 2, "2-2", 2.5)]


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def version(who: Principal) -> DatasetVersion:
    create_datastore(who, "images", "folder", {"path": "/mnt/images"})
    return changes.create(who, "birds", "images", "2024")


def packed(files: list[ListedFile]) -> bytes:
    buffer = io.BytesIO()
    writer = ManifestWriter(buffer)
    for file in files:
        writer.write(file)
    writer.flush()
    return buffer.getvalue()


def brought(order: NodeOrder, data: bytes, **result: Any) -> None:
    """The node uploads this list, and says so."""
    answer = sent(order, "PUT", "list/", data)
    assert answer.status_code == 201, answer.text
    facts = {"sha256": answer.json()["sha256"], "is_file": False, **result}
    assert report_result(order, **facts).status_code == 204


def fresh(version: DatasetVersion) -> DatasetVersion:
    listing_progress.continue_listing(version.pk)
    return DatasetVersion.objects.select_related("dataset__datastore", "manifest").get(pk=version.pk)


def listed(version: DatasetVersion, files: list[ListedFile] = FILES) -> DatasetVersion:
    """The version after a node has listed these files."""
    alpha = prober("alpha")
    listing_progress.continue_listing(version.pk)
    _, order = taken_up(alpha)
    brought(order, packed(files))
    return fresh(version)


class TestOrder:
    def test_goes_to_a_node_and_its_list_makes_the_version_ready(self, version: DatasetVersion) -> None:
        prober("beta", INPUTS)
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        order, node_order = taken_up(alpha)
        assert (order.work, node_order.inputs) == ("list", {"data": "/mnt/images/2024"})
        facts = json.dumps({"files": 1, "bytes": 7}).encode()
        assert sent(node_order, "POST", "progress/", facts).status_code == 204
        version.refresh_from_db()
        assert (version.files, version.bytes, version.state) == (1, 7, "listing")
        brought(node_order, packed(FILES), note="Links are not in the list: loop.")
        version = fresh(version)
        assert (version.state, version.files, version.bytes) == ("ready", 2, 3)
        assert file_list.read_page(version, 0, 10) == FILES
        assert DataOrder.objects.count() == 1

    def test_waits_for_a_node_that_can(self, version: DatasetVersion, who: Principal) -> None:
        prober("beta", INPUTS)
        listing_progress.advance_listings(timezone.now())
        assert not DataOrder.objects.exists()
        page = client_of(who.user).get("/data/sets/birds/1/").content.decode()
        assert "No node can. beta: Its agent must be upgraded" in page
        prober("alpha")
        listing_progress.advance_listings(timezone.now())
        page = client_of(who.user).get("/data/sets/birds/1/").content.decode()
        assert "alpha is to list the files" in page

    def test_goes_to_another_node_when_the_first_is_lost(self, version: DatasetVersion) -> None:
        alpha, beta = prober("alpha"), prober("beta")
        listing_progress.continue_listing(version.pk)
        order, _ = taken_up(alpha)
        lose(order)
        listing_progress.continue_listing(version.pk)
        second, node_order = taken_up(beta)
        assert second.order_number == 2
        brought(node_order, packed(FILES))
        assert fresh(version).state == "ready"

    def test_fails_when_nodes_are_lost_again_and_again(self, version: DatasetVersion) -> None:
        prober("alpha")
        for _ in range(listing_progress.MAX_ORDERS):
            listing_progress.continue_listing(version.pk)
            lose(DataOrder.objects.get(ended_at=None))
        assert fresh(version).failure == "It was ordered 3 times without a result: It was lost."

    def test_fails_with_what_the_node_says(self, version: DatasetVersion, who: Principal) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        order, _ = taken_up(alpha)
        fail(alpha, order, "/mnt/images/2024 is not there: mount it.")
        version = fresh(version)
        assert (version.state, version.failure) == (
            "failed",
            "alpha: /mnt/images/2024 is not there: mount it.",
        )
        page = client_of(who.user).get("/data/sets/birds/1/").content.decode()
        assert "is not there: mount it." in page

    def test_of_a_deleted_dataset_ends(self, version: DatasetVersion, who: Principal) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        order, _ = taken_up(alpha)
        changes.delete(who, version.dataset)
        assert alpha.report().stop[0].run == order.pk
        listing_progress.continue_listing(version.pk)

    def test_that_takes_too_long_goes_elsewhere(self, version: DatasetVersion) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        order, _ = taken_up(alpha)
        data_lifecycle.end_overdue(timezone.now() + timedelta(hours=3))
        order.refresh_from_db()
        assert (order.state, order.is_lost) == ("failed", True)

    def test_of_a_store_names_its_role(self, who: Principal) -> None:
        create_datastore(who, "bucket", "s3", {"bucket": "birds", "sign_in": "node"})
        version = changes.create(who, "birds", "bucket", "2024")
        listing.list_version(version.pk)
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        _, node_order = taken_up(alpha)
        download = node_order.downloads["data"]
        assert (download.path, download.store.sign_in, download.secret_key) == ("2024", "node", "")
        brought(node_order, packed(FILES))
        assert fresh(version).state == "ready"

    def test_of_a_web_server_is_refused(self, who: Principal) -> None:
        create_datastore(who, "web", "http", {"url": "https://data.example.org"})
        with pytest.raises(SpecError, match="cannot be asked which files it has"):
            changes.create(who, "birds", "web", "")


def lose(order: DataOrder) -> None:
    order_lifecycle.finish(
        order, OrderState.FAILED, "It was lost.", timezone.now(), is_over=True, is_lost=True
    )


def line(*facts: Any) -> bytes:
    return json.dumps(facts).encode() + b"\n"


class TestList:
    @pytest.mark.parametrize(
        "data",
        [
            b"no gzip",
            gzip.compress(b"", mtime=0),
            gzip.compress(b"no JSON\n", mtime=0),
            gzip.compress(line("a", 1, "e"), mtime=0),
            gzip.compress(line("../a", 1, "e", 1.0), mtime=0),
            gzip.compress(line("b", 1, "e", 1.0) + line("a", 1, "e", 1.0), mtime=0),
            gzip.compress(line("a", 1, "e", 1.0) + line("a", 1, "e", 1.0), mtime=0),
            gzip.compress(line("a", -1, "e", 1.0), mtime=0),
            gzip.compress(line("a", True, "e", 1.0), mtime=0),
            gzip.compress(line("a", 1, "e" * 2000, 1.0), mtime=0),
            gzip.compress(line("a", 1, "e", float("inf")), mtime=0),
            gzip.compress(b"x" * 10 * accepted_list.MAX_LINE, mtime=0),
            packed(FILES)[:-20],
        ],
    )
    def test_that_is_none_is_refused(self, version: DatasetVersion, data: bytes) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        _, node_order = taken_up(alpha)
        brought(node_order, data)
        version = fresh(version)
        assert version.state == "failed"
        assert version.failure.startswith("alpha has brought no list: ")

    def test_of_one_file_has_one(self, version: DatasetVersion) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        _, node_order = taken_up(alpha)
        brought(node_order, packed(FILES), is_file=True)
        assert "it has 2 files" in fresh(version).failure

    def test_is_no_larger_than_the_limit(
        self, version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alpha = prober("alpha")
        listing_progress.continue_listing(version.pk)
        _, node_order = taken_up(alpha)
        monkeypatch.setattr("jobs.data_orders.result_routes.MAX_LIST_BYTES", 10)
        assert sent(node_order, "PUT", "list/", packed(FILES)).status_code == 413


class TestRuns:
    """Of a dataset of a folder."""

    def test_read_it_where_it_lies_and_compare_it(self, version: DatasetVersion, who: Principal) -> None:
        ready = listed(version)
        alpha = played("alpha", *ALL)
        run = launched(who, inputs={"birds": {"dataset": "birds"}})
        assert run.spec["inputs"]["birds"] == {"dataset": "birds", "version": 1, "mode": "mount"}
        order = alpha.claim(run)
        assert (order.inputs, order.downloads) == ({"birds": "/mnt/images/2024"}, {})
        assert order.lists["birds"].manifest == ready.manifest.sha256
        assert order.lists["birds"].is_file is False

    def test_wait_for_a_node_that_compares(self, version: DatasetVersion, who: Principal) -> None:
        listed(version)
        alpha = played("alpha", INPUTS, DOWNLOADS, DATASETS)
        run = launched(who, inputs={"birds": {"dataset": "birds"}})
        assert run.state == "Queued"
        assert alpha.report().start == ()

    def test_cannot_download_it(self, version: DatasetVersion, who: Principal) -> None:
        listed(version)
        with pytest.raises(SpecError, match="needs mode 'mount'"):
            launched(who, inputs={"birds": {"dataset": "birds", "mode": "download"}})


def played(name: str, *capabilities: str) -> Played:
    """The node again, with these capabilities."""
    machine = Node.objects.get(name=name)
    machine.capabilities = " ".join(capabilities)
    machine.save(update_fields=["capabilities"])
    return Played(machine)


def test_the_api_makes_one(who: Principal) -> None:
    client: Client = api_client(who.user)
    create_datastore(who, "images", "folder", {"path": "/mnt/images"})
    body = {"name": "birds", "datastore": "images", "path": ""}
    answer = client.post("/api/v1/datasets/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["state"]) == (201, "listing")
