"""Shares of workspaces in a cluster: on the page, in the API and on the command line."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command

from clusters.fair_share import shares
from clusters.models import ClusterEvent, ClusterShare
from tests.clusters.builders import cluster, workspace
from tests.people import api_client, client_of, make_operator, make_viewer
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
API = "/api/v1/clusters/local/shares/"
PAGE = "/clusters/local/shares/"


@pytest.fixture(autouse=True)
def world() -> None:
    make_operator()
    cluster("local")
    workspace("vision")
    workspace("speech")


def stored() -> dict[str, float]:
    return {row.workspace.slug: row.share for row in shares.share_rows(cluster("local"))}


class TestPage:
    def test_sets_shares_and_says_so_in_the_journal_and_the_audit_trail(self) -> None:
        browser = client_of(make_operator())
        assert "Part of recent use" in browser.get(PAGE).content.decode()
        answer = browser.post(PAGE, {"share-vision": "3", "share-speech": "1", "share-default": "1"})
        assert answer.status_code == 302
        assert stored() == {"default": 1.0, "speech": 1.0, "vision": 3.0}
        assert ClusterShare.objects.count() == 1
        assert ClusterEvent.objects.get().message == "Shares set by olivia: vision 3."
        assert AuditEvent.objects.get(verb="cluster.shares_changed").detail == {"shares": {"vision": 3.0}}

    @pytest.mark.parametrize("text", ["-1", "nan", "inf", "1001", "", "many"])
    def test_refuses_what_is_no_share(self, text: str) -> None:
        fields = {"share-vision": text, "share-speech": "1", "share-default": "1"}
        answer = client_of(make_operator()).post(PAGE, fields)
        assert answer.status_code == 400
        assert not ClusterShare.objects.exists()


class TestApi:
    def test_sets_some_and_keeps_the_others(self) -> None:
        client = api_client(make_operator())
        client.patch(API, {"shares": {"vision": 3}}, content_type="application/json")
        answer = client.patch(API, {"shares": {"speech": 2}}, content_type="application/json")
        rows = {row["workspace"]: row for row in answer.json()}
        assert {slug: row["share"] for slug, row in rows.items()} == {"default": 1, "speech": 2, "vision": 3}
        assert rows["vision"]["share_part"] == 0.5
        assert rows["vision"]["factor"] == 1
        assert client.get(API).json() == answer.json()

    @pytest.mark.parametrize(
        "value", [{"nobody": 1}, {"vision": -1}, {"vision": 5000}, {"vision": "x"}, {"a\0": 1}]
    )
    def test_refuses_by_name_and_sets_nothing(self, value: dict[str, Any]) -> None:
        body = {"shares": {"speech": 2, **value}}
        answer = api_client(make_operator()).patch(API, body, content_type="application/json")
        assert answer.status_code == 400
        assert not ClusterShare.objects.exists()

    def test_only_lists_who_may_use_the_cluster(self) -> None:
        cluster("local").workspaces.add(workspace("vision"))
        answer = api_client(make_operator()).get(API)
        assert [row["workspace"] for row in answer.json()] == ["vision"]

    def test_is_for_operators(self) -> None:
        assert api_client(make_viewer()).get(API).status_code == 403


class TestCommand:
    def test_sets_and_prints(self) -> None:
        out = io.StringIO()
        call_command("cluster", "shares", "local", "vision=3", stdout=out)
        assert "vision\tshare 3, 60 % of all\tused 0.0 GPU-hours, 0 % of all" in out.getvalue()

    @pytest.mark.parametrize("text", ["vision", "vision=x", "nobody=1", "vision=nan"])
    def test_refuses(self, text: str) -> None:
        err = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("cluster", "shares", "local", text, stderr=err)
        assert ": " in err.getvalue()
        assert not ClusterShare.objects.exists()
