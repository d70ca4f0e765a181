"""People begin tests of datastores, cancel and see them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from datastores.changes import create
from datastores.models import Datastore
from jobs.data_orders.models import is_data_order_id
from jobs.datastore_tests.requests import begin_test
from jobs.models import DataOrder
from jobs.node_orders import order_purge
from tests.api.contract import ApiClient
from tests.datastores.played_orders import prober, report_result, sent, taken_up
from tests.people import (
    api_client,
    client_of,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
    token_of,
)
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db(transaction=True)
MEASURED = {"files": 2, "bytes": 3_000_000, "seconds": 1.5}


@pytest.fixture
def who() -> Principal:
    return principal_of(make_owner())


def folder(who: Principal) -> Datastore:
    return create(who, "images", "folder", {"path": "/mnt/images"})


def rows(client: Client, name: str) -> dict[str | None, dict[str, Any]]:
    answer = client.get(f"/api/v1/datastores/{name}/test/").json()
    return {row["node"]: row for row in answer["results"]}


class TestRequests:
    @pytest.fixture
    def images(self, who: Principal) -> Datastore:
        return folder(who)

    def test_a_second_one_is_the_one_that_goes_on(self, who: Principal, images: Datastore) -> None:
        prober("alpha")
        first = begin_test(who, images)
        assert begin_test(who, images) == first
        assert DataOrder.objects.count() == 1

    def test_the_next_one_takes_the_place_of_the_last(self, who: Principal, images: Datastore) -> None:
        alpha = prober("alpha")
        first = begin_test(who, images)
        order, node_order = taken_up(alpha)
        report_result(node_order, **MEASURED)
        assert begin_test(who, images).pk != first.pk
        assert not DataOrder.objects.filter(pk=order.pk).exists()
        # Its node is told to forget it.
        ack = alpha.tell(order, "done")
        assert (order.pk, 1) in ack.settled
        order_purge.purge_orders(DataOrder, is_data_order_id, timezone.now())

    def test_one_is_canceled(self, who: Principal, images: Datastore) -> None:
        alpha, beta, client = prober("alpha"), prober("beta"), api_client(who.user)
        begin_test(who, images)
        order, _ = taken_up(alpha)
        answer = client.post("/api/v1/datastores/images/test/cancel/")
        assert answer.status_code == 202
        assert rows(client, "images")["beta"]["state"] == "canceled"
        assert alpha.report().stop[0].run == order.pk
        alpha.tell(order, "done", stopping="canceled")
        assert rows(client, "images")["alpha"]["state"] == "canceled"
        assert beta.report().start == ()

    def test_viewers_see_and_strangers_do_not(self, who: Principal, images: Datastore) -> None:
        viewer = api_client(make_person("vera", Role.VIEWER))
        address = "/api/v1/datastores/images/test/"
        assert viewer.get(address).status_code == 404
        begin_test(who, images)
        assert viewer.get(address).status_code == 200
        assert viewer.post(address, {}, content_type="application/json").status_code == 403
        elsewhere = make_workspace("other")
        otto = make_person("otto", Role.OWNER, elsewhere)
        other = ApiClient(headers={"authorization": f"Bearer {token_of(otto, elsewhere)}"})
        assert other.get(address).status_code == 404

    @pytest.mark.parametrize("body", [{"nodes": "alpha"}, {"path": "../etc"}, {"path": 1}, {"other": 1}])
    def test_a_wrong_one_is_refused_at_its_field(
        self, who: Principal, images: Datastore, body: dict[str, Any]
    ) -> None:
        answer = api_client(who.user).post(
            "/api/v1/datastores/images/test/", body, content_type="application/json"
        )
        assert answer.status_code == 400
        assert next(iter(body)) in answer.content.decode()

    @pytest.mark.parametrize(
        "result",
        [{}, {**MEASURED, "bytes": -1}, {**MEASURED, "seconds": "1"}, {**MEASURED, "files": 1.5}],
    )
    def test_a_wrong_result_is_refused(
        self, who: Principal, images: Datastore, result: dict[str, Any]
    ) -> None:
        alpha = prober("alpha")
        begin_test(who, images)
        _, node_order = taken_up(alpha)
        assert report_result(node_order, **result).status_code == 400
        assert sent(node_order, "POST", "result/", b"{}", ticket="thu_other").status_code == 401
        assert sent(node_order, "PUT", "list/", b"x").status_code == 403


class TestPage:
    def test_shows_each_machine_and_tests(self, who: Principal) -> None:
        alpha, client = prober("alpha"), client_of(who.user)
        folder(who)
        page = client.get("/data/datastores/images/").content.decode()
        assert "It has not been tested yet." in page
        assert client.post("/data/datastores/images/test/")["Location"] == "/data/datastores/images/"
        page = client.get("/data/datastores/images/").content.decode()
        assert 'hx-trigger="every 1s"' in page
        assert "which the hub does not have" in page
        _, node_order = taken_up(alpha)
        report_result(node_order, **MEASURED)
        part = client.get("/data/datastores/images/", HTTP_HX_REQUEST="true").content.decode()
        assert "1.9 MiB/s" in part
        assert "hx-trigger" not in part
        assert "<html" not in part

    def test_cancels(self, who: Principal) -> None:
        prober("alpha")
        client = client_of(who.user)
        begin_test(who, folder(who))
        client.post("/data/datastores/images/test/cancel/")
        assert "Canceled" in client.get("/data/datastores/images/").content.decode()
