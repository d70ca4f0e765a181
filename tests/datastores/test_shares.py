"""NFS shares as datastores: by the API and the page, in runs, and what people are told before a launch."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from datastores.changes import change, create
from datastores.datasets import changes as dataset_changes
from datastores.models import Datastore
from jobs.datastore_tests.requests import begin_test
from jobs.models import DataOrder
from jobs.node_listings import listing_progress
from jobs.scheduling.run_preview import preview
from jobs.states import RunState
from tests.datastores.played_orders import ALL, prober, taken_up
from tests.jobs.builders import launched, node, spec
from tests.people import api_client, client_of, make_contributor, principal_of
from trainhub_launch.data.shares import InputMount, NfsShare
from trainhub_launch.machine import INPUTS, MOUNTS, OWN_ACCOUNTS
from workspaces.access import Principal

pytestmark = pytest.mark.django_db(transaction=True)
API = "/api/v1/datastores/"
SHARE = {"name": "share", "kind": "nfs", "host": "files.example.org", "export": "/srv/images"}
BIRDS = {"birds": {"datastore": "share", "path": "2024"}}
MOUNTED = NfsShare("files.example.org", "/srv/images")


@pytest.fixture
def api() -> Client:
    return api_client(make_contributor())


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


def make(who: Principal, **fields: str) -> Datastore:
    place = {"host": "files.example.org", "export": "/srv/images", "path": "birds"}
    return create(who, "share", "nfs", {**place, **fields})


def post(client: Client, **changes: Any) -> Any:
    return client.post(API, {**SHARE, **changes}, "application/json")


class TestApi:
    def test_one_is_made_and_changed(self, api: Client) -> None:
        made = post(api, path="/birds/", options="rsize=65536, nconnect=4", host="Files.Example.org.").json()
        assert (made["host"], made["export"], made["path"]) == ("files.example.org", "/srv/images", "birds")
        assert (made["options"], made["read_only"]) == ("nconnect=4,rsize=65536", True)
        assert Datastore.objects.get().place == "files.example.org:/srv/images/birds"
        changed = api.patch(f"{API}share/", {"read_only": False}, "application/json").json()
        assert changed == {**made, "read_only": False}
        changed = api.patch(f"{API}share/", {"options": ""}, "application/json").json()
        assert changed == {**made, "read_only": False, "options": ""}

    @pytest.mark.parametrize(
        ("changes", "field", "words"),
        [
            ({"host": ""}, "host", "name or address"),
            ({"host": "-o"}, "host", "name or address"),
            ({"host": "files,rw"}, "host", "without port, options"),
            ({"host": "files:/srv"}, "host", "without port, options"),
            ({"host": "files.example.org:2049"}, "host", "without port"),
            ({"host": "files rw"}, "host", "name or address"),
            ({"host": "10.0.0"}, "host", "name or address"),
            ({"host": "fe80::1%eth0"}, "host", "name or address"),
            ({"host": "a" * 64}, "host", "name or address"),
            ({"export": ""}, "export", "absolute path"),
            ({"export": "srv/images"}, "export", "absolute path"),
            ({"export": "/srv/a,exec"}, "export", "without white space, commas"),
            ({"export": "/srv/my images"}, "export", "without white space, commas"),
            ({"export": "/srv/\u00a0images"}, "export", "without white space, commas"),
            ({"export": "/srv/../etc"}, "export", "'..'"),
            ({"export": f"/{'a' * 1024}"}, "export", "1024"),
            ({"path": "../etc"}, "path", "'..'"),
            ({"options": "exec"}, "options", "'exec' is not accepted; those that can be chosen are vers"),
            ({"options": "soft"}, "options", "TrainHub sets the others itself"),
            ({"options": "vers=2"}, "options", "vers=2"),
            ({"options": "nconnect=17"}, "options", "nconnect=17"),
            ({"options": "rsize=1000"}, "options", "rsize=1000"),
            ({"options": "rsize=\u0661\u0660\u0662\u0664"}, "options", "rsize"),
            ({"options": "vers=4,vers=3"}, "options", "vers stands there twice"),
            ({"read_only": "perhaps"}, "read_only", ""),
            ({"bucket": "birds"}, "bucket", "is no setting of the kind nfs, which has: host, export"),
        ],
    )
    def test_a_wrong_one_is_refused_at_its_field(
        self, api: Client, changes: dict[str, str], field: str, words: str
    ) -> None:
        answer = post(api, **changes)
        assert answer.status_code == 400
        assert {error["field"] for error in answer.json()["errors"]} == {field}
        assert words in answer.json()["detail"]

    def test_no_text_has_a_nul(self, api: Client) -> None:
        assert post(api, export="/srv/\0images").status_code == 400

    @pytest.mark.parametrize("host", ["10.0.0.5", "fd00::5", "[fd00::5]"])
    def test_an_address_is_a_host(self, who: Principal, host: str) -> None:
        address = host.strip("[]")
        shown = f"[{address}]" if ":" in address else address
        assert make(who, host=host).place == f"{shown}:/srv/images/birds"


class TestRuns:
    def test_get_the_share_with_their_order(self, who: Principal) -> None:
        datastore, alpha = make(who), prober("alpha", *ALL, MOUNTS)
        order = alpha.claim(launched(who, inputs=BIRDS))
        assert order.mounts == {"birds": InputMount(MOUNTED, "birds/2024")}
        assert (order.inputs, order.downloads) == ({}, {})
        change(who, datastore, {"export": "/srv/elsewhere"})
        assert alpha.claim(launched(who, inputs=BIRDS)).mounts["birds"].share.export == "/srv/elsewhere"

    def test_wait_for_a_node_that_mounts(self, who: Principal) -> None:
        make(who)
        prober("alpha")
        run = launched(who, inputs=BIRDS)
        assert run.state == RunState.QUEUED
        message = run.events.latest("pk").message
        assert "alpha does not mount NFS shares: run its agent as root on a kernel with NFS" in message
        assert "install nfs-common (Debian, Ubuntu) or nfs-utils (RHEL, Rocky, Fedora)" in message

    def test_of_a_folder_need_no_such_node(self, who: Principal) -> None:
        create(who, "folder", "folder", {"path": "/mnt/images"})
        prober("alpha")
        assert launched(who, inputs={"birds": {"datastore": "folder"}}).state != RunState.QUEUED

    def test_are_told_who_must_be_able_to_read(self, who: Principal) -> None:
        make(who)
        prober("alpha", INPUTS, MOUNTS, OWN_ACCOUNTS)
        messages = [finding.message for finding in preview(spec(who, inputs=BIRDS), who).findings]
        words = "everybody there must be able to read files.example.org:/srv/images/birds/2024"
        assert any(words in message for message in messages)

    @pytest.mark.parametrize(
        ("kind", "count", "words"),
        [
            ("nfs", 4, "all 4 nodes read files.example.org:/srv/images/2024 from one file server at"),
            ("nfs", 3, ""),
            ("folder", 4, "if /mnt/images/2024 is a share of one file server, all 4 nodes read it from"),
        ],
    )
    def test_of_many_nodes_are_told_that_they_share_a_server(
        self, who: Principal, kind: str, count: int, words: str
    ) -> None:
        place = {
            "nfs": {"host": "files.example.org", "export": "/srv/images"},
            "folder": {"path": "/mnt/images"},
        }
        create(who, "share", kind, place[kind])
        for number in range(count):
            node(f"node{number}")
        several = {"type": "pytorch", "process_count": count, "node_count": count}
        many = spec(who, inputs=BIRDS, distribution=several)
        found = preview(many, who).findings
        hints = [finding.message for finding in found if "one file server" in finding.message]
        assert [words in hint for hint in hints] == ([True] if words else [])


class TestNodes:
    def test_test_it_and_the_hub_does_not(self, who: Principal) -> None:
        datastore = make(who)
        alpha = prober("alpha", *ALL, MOUNTS)
        prober("beta")
        test = begin_test(who, datastore)
        assert (test.hub_state, test.hub_reason) == ("skipped", "Nodes mount it, and the hub does not.")
        _, order = taken_up(alpha)
        assert (order.mounts, order.inputs, order.downloads) == (
            {"data": InputMount(MOUNTED, "birds")},
            {},
            {},
        )
        refused = DataOrder.objects.get(node__name="beta")
        assert refused.reason.startswith("It does not mount NFS shares: run its agent as root")

    def test_list_its_files(self, who: Principal) -> None:
        make(who)
        prober("beta")
        version = dataset_changes.create(who, "birds", "share", "2024")
        alpha = prober("alpha", *ALL, MOUNTS)
        listing_progress.continue_listing(version.pk)
        order, node_order = taken_up(alpha)
        assert (order.work, node_order.mounts) == ("list", {"data": InputMount(MOUNTED, "birds/2024")})


class TestPage:
    def test_adds_one_that_can_be_written_to(self, who: Principal) -> None:
        page = client_of(who.user)
        form = page.get("/data/new/?kind=nfs").content.decode()
        assert "Each node whose agent is root mounts the share" in form
        fields = {"name": "share", "host": "files.example.org", "export": "/srv/images"}
        answer = page.post("/data/new/?kind=nfs", fields, follow=True).content.decode()
        assert "Runs can read share now" in answer
        assert "files.example.org:/srv/images" in answer
        assert not Datastore.objects.get().share.read_only

    def test_says_what_is_wrong_at_the_field(self, who: Principal) -> None:
        fields = {"name": "share", "host": "files", "export": "images", "read_only": "on"}
        answer = client_of(who.user).post("/data/new/?kind=nfs", fields)
        assert answer.status_code == 400
        assert "Must be the absolute path that the server exports" in answer.content.decode()
