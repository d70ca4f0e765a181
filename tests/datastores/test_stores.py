"""Datastores of object stores: their fields, their credentials, and what a node gets with an order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from datastores import changes
from datastores.models import Datastore
from jobs.node_api import run_secrets
from jobs.scheduling.run_preview import preview
from tests.datastores.test_datastores import able
from tests.jobs.builders import launched, spec
from tests.people import api_client, client_of, make_contributor, make_owner, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import DOWNLOADS
from workspaces.access import Principal
from workspaces.secrets import store

pytestmark = pytest.mark.django_db
API = "/api/v1/datastores/"
BUCKET = {"kind": "s3", "bucket": "team-data", "path": "/sets/", "access_key_id": "AKIA1", "secret": "s3-key"}
CONTAINER = {"kind": "azure_blob", "account": "team", "container": "birds", "secret": "sas"}
WEB = {"kind": "http", "url": "https://data.example.org/sets/"}
BIRDS: dict[str, Any] = {"birds": {"datastore": "images", "path": "2024"}}


@pytest.fixture
def who() -> Principal:
    """Somebody in a workspace with secrets for all its members."""
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", "the-secret-part", store.WORKSPACE)
    store.put(
        owner,
        "sas",
        f"sv=1&sig=abc&se={(timezone.now() + timedelta(days=9)):%Y-%m-%dT%H:%M:%SZ}",
        store.WORKSPACE,
    )
    return owner


@pytest.fixture
def api(who: Principal) -> Client:
    return api_client(make_contributor())


def post(client: Client, body: dict[str, str], **more: str) -> Any:
    return client.post(API, {"name": "images", **body, **more}, "application/json")


class TestFields:
    def test_each_kind_is_made_and_shows_what_it_has(self, api: Client) -> None:
        made = post(api, BUCKET).json()
        assert made["path"] == "sets"
        assert made["sign_in"] == "secret"
        assert made["endpoint"] == ""
        assert "account" not in made
        assert post(api, CONTAINER, name="blobs").json()["container"] == "birds"
        assert post(api, WEB, name="web").json() | {"created_at": ""} == {
            "name": "web",
            "kind": "http",
            "url": "https://data.example.org/sets",
            "path": "",
            "sign_in": "none",
            "secret": "",
            "description": "",
            "created_by": "carl",
            "created_at": "",
        }

    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({**BUCKET, "bucket": "s3://team"}, "bucket", "without s3:// before it"),
            ({**BUCKET, "access_key_id": ""}, "access_key_id", "must be the id of the access key"),
            ({**BUCKET, "secret": ""}, "access_key_id", "stands without a secret"),
            ({**BUCKET, "secret": "hf-token"}, "secret", "has no secret 'hf-token' for all its members"),
            ({**BUCKET, "sign_in": "node"}, "secret", "is not used with sign_in node"),
            ({**BUCKET, "endpoint": "https://me:pw@minio"}, "endpoint", "without user, password"),
            ({**BUCKET, "endpoint": "minio:9000"}, "endpoint", "must be an address such as https://"),
            ({**BUCKET, "path": "a/../b"}, "path", "without '..'"),
            ({**BUCKET, "container": "x"}, "container", "is no setting of the kind s3, which has: bucket"),
            ({**CONTAINER, "account": "Team!"}, "account", "3 to 24 small letters"),
            ({**CONTAINER, "container": "a--b"}, "container", "must be the name of a container"),
            ({**WEB, "url": "ftp://data.example.org"}, "url", "must be an address such as https://"),
            ({**WEB, "url": "https://data.example.org/?sig=1"}, "url", "credentials are a secret"),
            ({**WEB, "sign_in": "node"}, "sign_in", "a web server knows no role"),
        ],
    )
    def test_a_wrong_one_is_refused_at_its_field(
        self, api: Client, body: dict[str, str], field: str, words: str
    ) -> None:
        answer = post(api, body)
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith(f"{field}: ")
        assert words in answer.json()["detail"]
        assert not Datastore.objects.exists()

    def test_a_change_keeps_the_rest(self, api: Client) -> None:
        post(api, BUCKET)
        changed = api.patch(f"{API}images/", {"bucket": "other"}, "application/json").json()
        assert (changed["bucket"], changed["secret"], changed["access_key_id"]) == (
            "other",
            "s3-key",
            "AKIA1",
        )


class TestRuns:
    def test_get_a_download_and_the_credentials_apart_from_it(self, who: Principal) -> None:
        changes.create(who, "images", "s3", _fields(BUCKET))
        alpha = able("alpha", DOWNLOADS)
        run = launched(who, inputs=BIRDS)
        assert run.spec["inputs"]["birds"]["mode"] == "download"
        order = alpha.claim(run)
        download = order.downloads["birds"]
        assert (download.path, download.secret_key) == ("sets/2024", "datastore:s3-key")
        assert "the-secret-part" not in str(order.to_json())
        assert order.inputs == {}
        values = run_secrets.take(alpha.node, run.pk, 1, alpha.nonce)
        assert values == {"datastore:s3-key": "the-secret-part"}

    def test_wait_for_a_node_that_downloads(self, who: Principal) -> None:
        changes.create(who, "images", "s3", _fields(BUCKET))
        able("alpha")
        run = launched(who, inputs=BIRDS)
        assert "alpha does not download data: upgrade its agent" in run.events.latest("pk").message

    def test_cannot_mount_a_bucket(self, who: Principal) -> None:
        changes.create(who, "images", "s3", _fields(BUCKET))
        with pytest.raises(SpecError) as raised:
            launched(who, inputs={"birds": {"datastore": "images", "mode": "mount"}})
        assert raised.value.field == "inputs.birds.mode"
        assert "which needs mode 'download'; leave mode out" in raised.value.message

    def test_must_name_a_file_of_a_web_server(self, who: Principal) -> None:
        changes.create(who, "images", "http", _fields(WEB))
        with pytest.raises(SpecError, match="must name a file of images"):
            launched(who, inputs={"birds": {"datastore": "images"}})

    @pytest.mark.parametrize(
        ("days", "level", "words"), [(-1, "error", "ended on"), (0.5, "hint", "ends on"), (9, None, "")]
    )
    def test_are_told_when_a_signature_ends(
        self, who: Principal, days: float, level: str | None, words: str
    ) -> None:
        end = f"{(timezone.now() + timedelta(days=days)):%Y-%m-%dT%H:%M:%SZ}"
        store.put(who, "sas", f"sv=1&sig=abc&se={end}", store.WORKSPACE)
        changes.create(who, "images", "azure_blob", _fields(CONTAINER))
        findings = [
            item for item in preview(spec(who, inputs=BIRDS), who).findings if item.field == "inputs.birds"
        ]
        assert [item.level for item in findings] == ([level] if level else [])
        assert all(f"the shared access signature in sas {words} {end}" in item.message for item in findings)


class TestPage:
    def test_adds_a_bucket_with_a_secret_of_the_workspace(self, who: Principal) -> None:
        page = client_of(who.user)
        assert "s3-key" in page.get("/data/new/?kind=s3").content.decode()
        fields = {
            "name": "images",
            "bucket": "team-data",
            "access_key_id": "AKIA1",
            "secret": "s3-key",
            "sign_in": "node",
        }
        answer = page.post("/data/new/?kind=s3", fields, follow=True).content.decode()
        assert "Runs can read images now" in answer
        assert "s3://team-data" in answer

    def test_says_at_the_field_what_is_wrong(self, who: Principal) -> None:
        fields = {"name": "images", "bucket": "!", "sign_in": "none"}
        answer = client_of(who.user).post("/data/new/?kind=s3", fields)
        assert answer.status_code == 400
        assert "Must be the name of a bucket" in answer.content.decode()

    def test_has_no_other_kinds(self, who: Principal) -> None:
        assert client_of(who.user).get("/data/new/?kind=ftp").status_code == 404


def _fields(body: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in body.items() if name != "kind"}
