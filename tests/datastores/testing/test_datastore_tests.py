"""Tests of datastores: begun by people, carried out by the hub and by nodes, kept until the next one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from datastores.changes import create
from datastores.models import Datastore, DatastoreTest
from datastores.testing import hub_test
from jobs.data_orders import data_lifecycle
from jobs.datastore_tests.requests import MAX_NODES, begin_test
from jobs.logs import log_store
from jobs.models import DataOrder
from jobs.node_api import run_secrets
from jobs.node_api.claims import Refused
from jobs.recovery import reaper
from tests.datastores.played_orders import ALL, fail, prober, report_result, taken_up
from tests.people import (
    api_client,
    make_owner,
    principal_of,
)
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_launch.machine import INPUTS
from workspaces.access import Principal
from workspaces.models import Secret, SecretUse
from workspaces.secrets import store

pytestmark = pytest.mark.django_db(transaction=True)
MEASURED = {"files": 2, "bytes": 3_000_000, "seconds": 1.5}


@pytest.fixture
def server(s3_server: S3Server) -> S3Server:
    s3_server.objects[BUCKET] = {"2024/a.bin": b"a" * 1000, "2024/b.bin": b"b" * 500}
    return s3_server


@pytest.fixture
def who() -> Principal:
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", SECRET, store.WORKSPACE)
    return owner


def bucket(who: Principal, server: S3Server, **changes: str) -> Datastore:
    fields = {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID, "secret": "s3-key"}
    return create(who, "bucket", "s3", {**fields, **changes})


def folder(who: Principal) -> Datastore:
    return create(who, "images", "folder", {"path": "/mnt/images"})


def rows(client: Client, name: str) -> dict[str | None, dict[str, Any]]:
    answer = client.get(f"/api/v1/datastores/{name}/test/").json()
    return {row["node"]: row for row in answer["results"]}


class TestHub:
    def result(self, who: Principal, datastore: Datastore, path: str = "") -> DatastoreTest:
        test = begin_test(who, datastore, path=path)
        hub_test.test_from_hub(test.pk)
        test.refresh_from_db()
        return test

    def test_reads_the_first_files(self, who: Principal, server: S3Server) -> None:
        test = self.result(who, bucket(who, server), "2024")
        assert (test.hub_state, test.hub_reason) == ("ok", "")
        assert (test.hub_result["files"], test.hub_result["bytes"]) == (2, 1500)
        assert SecretUse.objects.get().kind == "datastore"

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"secret": "other"}, "The bucket birds refuses these credentials"),
            ({"bucket": "cats"}, "There is no bucket cats"),
            ({"path": "2025"}, "has nothing at 2025: check the path"),
            ({"endpoint": "http://127.0.0.1:1"}, "takes no connection at port 1"),
            ({"endpoint": "http://no-such-host.invalid"}, "knows no address of no-such-host.invalid"),
        ],
    )
    def test_says_what_is_wrong(
        self, who: Principal, server: S3Server, changes: dict[str, str], words: str
    ) -> None:
        store.put(who, "other", "wrong", store.WORKSPACE)
        test = self.result(who, bucket(who, server, **changes))
        assert test.hub_state == "failed"
        assert words in test.hub_reason

    def test_has_nothing_to_read_of_a_folder(self, who: Principal) -> None:
        test = self.result(who, folder(who))
        assert (test.hub_state, test.hub_reason) == (
            "skipped",
            "It is a folder of the nodes, which the hub does not have.",
        )

    def test_of_a_web_server_needs_the_path_of_a_file(self, who: Principal, server: S3Server) -> None:
        server.objects["public"] = {"a.bin": b"x" * 700}
        web = create(who, "web", "http", {"url": f"{server.url}/public/"})
        assert self.result(who, web, "a.bin").hub_result["bytes"] == 700
        missing = self.result(who, web, "b.bin")
        assert "has no b.bin" in missing.hub_reason

    def test_says_that_a_secret_is_gone(self, who: Principal, server: S3Server) -> None:
        datastore = bucket(who, server)
        store.delete(who, Secret.objects.get())
        assert "no secret s3-key" in self.result(who, datastore).hub_reason

    def test_reads_also_if_its_message_was_lost(self, who: Principal, server: S3Server) -> None:
        test = begin_test(who, bucket(who, server))
        hub_test.test_missed()
        test.refresh_from_db()
        assert test.hub_state == "waiting"
        DatastoreTest.objects.update(created_at=timezone.now() - timedelta(seconds=20))
        hub_test.test_missed()
        test.refresh_from_db()
        assert test.hub_state == "ok"

    def test_that_never_answers_has_failed(self, who: Principal, server: S3Server) -> None:
        test = begin_test(who, bucket(who, server))
        DatastoreTest.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        row = rows(api_client(who.user), "bucket")[None]
        assert row["state"] == "failed"
        assert "worker has not answered" in row["reason"]
        # The next one begins.
        assert begin_test(who, test.datastore).pk != test.pk


class TestNodes:
    def test_measure_and_report(self, who: Principal, server: S3Server) -> None:
        alpha, client = prober("alpha"), api_client(who.user)
        datastore = bucket(who, server)
        answer = client.post("/api/v1/datastores/bucket/test/", {}, content_type="application/json")
        assert answer.status_code == 202
        assert answer.json()["is_over"] is False
        assert rows(client, "bucket")["alpha"]["state"] == "waiting"
        order, node_order = taken_up(alpha)
        assert (order.state, rows(client, "bucket")["alpha"]["state"]) == ("working", "testing")
        assert node_order.downloads["data"].store.settings["bucket"] == BUCKET
        assert SECRET not in str(node_order.to_json())
        values = run_secrets.take(alpha.node, order.pk, 1, alpha.nonce)
        assert values == {"datastore:s3-key": SECRET}
        assert report_result(node_order, **MEASURED).status_code == 204
        row = rows(client, "bucket")["alpha"]
        assert (row["state"], row["bytes_per_second"]) == ("ok", 2_000_000)
        # Nothing more is taken with its ticket, and its secret is no longer given.
        assert report_result(node_order, **MEASURED).status_code == 403
        with pytest.raises(Refused):
            run_secrets.take(alpha.node, order.pk, 1, alpha.nonce)
        alpha.log(order, PREPARATION_LOG, 0, b"read\n")
        assert not client.get(f"/api/v1/datastores/{datastore.name}/test/").json()["is_over"]
        alpha.tell(order, "done", logs={PREPARATION_LOG: 5})
        order.refresh_from_db()
        assert (order.state, order.settled_at is not None) == ("done", True)
        assert log_store.is_complete(order.pk, 1, PREPARATION_LOG)

    def test_read_a_folder_as_the_person_who_tests(self, who: Principal) -> None:
        alpha = prober("alpha")
        folder(who)
        begin_test(who, Datastore.objects.get(), path="2024")
        _, node_order = taken_up(alpha)
        assert (node_order.inputs, node_order.downloads) == ({"data": "/mnt/images/2024"}, {})
        assert node_order.person == who.user.username

    def test_say_why_they_cannot_read(self, who: Principal) -> None:
        alpha, client = prober("alpha"), api_client(who.user)
        begin_test(who, folder(who))
        order, _ = taken_up(alpha)
        fail(alpha, order, "/mnt/images is not there: mount it.")
        row = rows(client, "images")["alpha"]
        assert (row["state"], row["reason"]) == ("failed", "/mnt/images is not there: mount it.")

    def test_with_an_older_agent_get_no_order(self, who: Principal) -> None:
        beta = prober("beta", INPUTS)
        begin_test(who, folder(who))
        row = rows(api_client(who.user), "images")["beta"]
        assert row["state"] == "failed"
        assert row["reason"].startswith("Its agent must be upgraded")
        assert beta.report().start == ()

    def test_that_vanish_have_failed(self, who: Principal) -> None:
        alpha = prober("alpha")
        begin_test(who, folder(who))
        order, _ = taken_up(alpha)
        reaper.check_runs(timezone.now() + timedelta(seconds=110))
        order.refresh_from_db()
        assert order.state == "failed"
        assert "Node alpha has not reported for" in order.reason

    def test_that_hang_have_failed_after_two_minutes(self, who: Principal) -> None:
        alpha = prober("alpha")
        begin_test(who, folder(who))
        order, _ = taken_up(alpha)
        data_lifecycle.end_overdue(timezone.now() + timedelta(seconds=121))
        order.refresh_from_db()
        assert order.reason.startswith("alpha did not end within 120 s")
        assert alpha.report().stop[0].run == order.pk

    def test_whose_disk_is_lost_have_failed(self, who: Principal) -> None:
        alpha = prober("alpha")
        begin_test(who, folder(who))
        order, _ = taken_up(alpha)
        alpha.facts.clear()
        alpha.report()
        alpha.report(now=timezone.now() + timedelta(seconds=100))
        order.refresh_from_db()
        assert order.reason == "alpha has lost it, with its disk or its processes. Try it again."

    def test_are_chosen_by_name(self, who: Principal) -> None:
        for name in ("alpha", "beta"):
            prober(name)
        folder(who)
        client = api_client(who.user)
        address = "/api/v1/datastores/images/test/"
        refused = client.post(address, {"nodes": ["cats"]}, content_type="application/json")
        assert refused.status_code == 400
        assert "there is no node 'cats'; there are: alpha, beta" in refused.content.decode()
        client.post(address, {"nodes": ["beta"]}, content_type="application/json")
        assert set(rows(client, "images")) == {None, "beta"}

    def test_are_at_most_so_many(self, who: Principal) -> None:
        for number in range(MAX_NODES + 2):
            prober(f"n{number:02d}", *ALL)
        test = begin_test(who, folder(who))
        assert (DataOrder.objects.count(), test.left_out) == (MAX_NODES, 2)
