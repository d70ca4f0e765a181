"""Which log systems owners of workspaces may name, and what they learn about them."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from django.test import Client

from jobs.log_shipping import rounds
from jobs.log_shipping.models import LogTarget
from tests.jobs import builders
from tests.log_shipping.receiver import LogReceiver
from tests.people import (
    client_of,
    make_contributor,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
)
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.secrets import store
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API, PAGE = "/api/v1/log-target/", "/settings/log-system/"


class TestWorkspace:
    @pytest.fixture
    def owner_of(self) -> Principal:
        return principal_of(make_owner())

    @pytest.fixture
    def client(self, owner_of: Principal) -> Client:
        client = client_of(owner_of.user)
        session = client.session
        session["password_confirmed_at"] = time.time()
        session.save()
        return client

    def _put(self, client: Client, **fields: str) -> Any:
        return client.put(API, fields, content_type="application/json")

    def test_lines_of_its_own_runs_alone_with_its_secret(
        self, client: Client, owner_of: Principal, receiver: LogReceiver, settings: Any
    ) -> None:
        settings.LOG_DESTINATION = None
        receiver.token = "of-the-log-system"
        store.put(owner_of, "logs", receiver.token, "workspace")
        answer = self._put(
            client, kind="loki", url=receiver.url, headers="Authorization: Bearer {secret:logs}"
        )
        assert answer.status_code == 200, answer.content
        assert answer.json()["state"] == "unused"
        played, run = builders.running(principal_of(make_contributor()))
        played.log(run, "70_driver_log.txt", 0, b"one\n")
        rounds.ship_due()
        assert receiver.texts() == ["one"]
        answer = client.get(API)
        assert (answer.json()["state"], answer.json()["lines"]) == ("working", 1)
        assert receiver.token not in answer.content.decode()

    def test_runs_of_other_workspaces_are_not_shipped(self, client: Client, receiver: LogReceiver) -> None:
        self._put(client, kind="otlp", url=receiver.url)
        played, run = builders.running(
            principal_of(make_person("stan", Role.CONTRIBUTOR, make_workspace("other")))
        )
        played.log(run, "70_driver_log.txt", 0, b"one\n")
        rounds.ship_due()
        assert receiver.requests == 0

    def test_a_test_line_by_the_page(self, client: Client, receiver: LogReceiver) -> None:
        self._put(client, kind="otlp", url=receiver.url)
        client.post(f"{PAGE}test/")
        assert "on its way" in client.get(PAGE).content.decode()
        rounds.ship_due()
        assert receiver.texts()[0].startswith("[TrainHub] A test by ")
        assert "The test line was accepted." in client.get(PAGE).content.decode()
        receiver.answers = [(404, {}, b"inside")]
        client.post(f"{API}test/")
        rounds.ship_due()
        result = client.get(API).json()["test_result"]
        assert "404" in result
        assert "inside" not in result

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("kind", "syslog"),
            ("url", "ftp://a"),
            ("url", "http://user@a"),
            ("headers", "Authorization: Bearer plain"),
            ("headers", "Authorization: Bearer {secret:unknown}"),
            ("headers", "no colon"),
            ("labels", "hub=mine"),
            ("ca", "no certificate"),
        ],
    )
    def test_bad_input_names_the_field_alike(self, client: Client, field: str, value: str) -> None:
        fields = {"kind": "otlp", "url": "https://logs.example.org", field: value}
        answer = self._put(client, **fields)
        assert answer.status_code == 400
        assert field in answer.content.decode()
        page = client.post(PAGE, fields)
        assert page.status_code == 400
        assert f'id="id_{field}' in page.content.decode()
        assert not LogTarget.objects.exists()

    @pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "0"])
    def test_where_clouds_keep_credentials_no_line_goes(self, client: Client, host: str) -> None:
        self._put(client, kind="otlp", url=f"http://{host}/")
        client.post(f"{API}test/")
        rounds.ship_due()
        assert "may not reach" in client.get(API).json()["test_result"]

    def test_an_archived_workspace_ships_nothing(
        self, client: Client, owner_of: Principal, receiver: LogReceiver
    ) -> None:
        self._put(client, kind="otlp", url=receiver.url)
        client.post(f"{API}test/")
        owner_of.workspace.archived_at = datetime.datetime.now(datetime.UTC)
        owner_of.workspace.save()
        rounds.ship_due()
        assert receiver.requests == 0

    def test_a_secret_that_was_deleted_is_named(
        self, client: Client, owner_of: Principal, receiver: LogReceiver
    ) -> None:
        secret = store.put(owner_of, "logs", "of-the-log-system", "workspace")
        self._put(client, kind="otlp", url=receiver.url, headers="X-Token: {secret:logs}")
        store.delete(owner_of, secret)
        client.post(f"{API}test/")
        rounds.ship_due()
        assert "no secret logs any more" in client.get(API).json()["test_result"]

    def test_what_owners_do_is_in_the_audit_trail(self, client: Client, receiver: LogReceiver) -> None:
        self._put(client, kind="otlp", url=receiver.url)
        assert client.delete(API).status_code == 204
        verbs = AuditEvent.objects.filter(verb__startswith="log_target.").order_by("pk")
        assert list(verbs.values_list("verb", flat=True)) == ["log_target.stored", "log_target.removed"]
        assert client.get(API).status_code == 404
        assert client.post(f"{API}test/").status_code == 404

    def test_the_pages(self, client: Client, receiver: LogReceiver) -> None:
        assert "can be shipped to a log system" in client.get("/settings/").content.decode()
        fields = {"kind": "otlp", "url": receiver.url, "headers": "", "labels": "env=prod", "ca": ""}
        assert client.post(PAGE, fields, follow=True).status_code == 200
        assert "env=prod" in client.get(PAGE).content.decode()
        assert receiver.url.removeprefix("http://") in client.get("/settings/").content.decode()
        assert client.post(f"{PAGE}delete/").status_code == 302
        assert not LogTarget.objects.exists()
