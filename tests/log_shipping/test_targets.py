"""Who names log systems, and what is refused."""

from __future__ import annotations

import datetime
import ipaddress
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.management import CommandError, call_command
from django.test import Client

from jobs.log_shipping import destinations, rounds
from jobs.log_shipping.models import LogTarget
from tests.jobs import builders
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import LogReceiver, listening
from tests.people import (
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
)
from trainhub.env import EnvError
from trainhub.logs import shipping_settings
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.secrets import store
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API, PAGE = "/api/v1/log-target/", "/settings/log-system/"


class TestSettings:
    def test_an_address_gets_the_path_of_its_protocol(self) -> None:
        assert destinations.parse_url("otlp", "http://a:4318/") == "http://a:4318/v1/logs"
        assert destinations.parse_url("otlp", "https://a/otlp") == "https://a/otlp/v1/logs"
        assert destinations.parse_url("loki", "https://a") == "https://a/loki/api/v1/push"
        assert destinations.parse_url("loki", "https://a/x/api/v1/push") == "https://a/x/api/v1/push"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SHIP_LOGS_TO", "collector:4318"),
            ("SHIP_LOGS_TO", "http://user:password@collector"),
            ("SHIP_LOGS_TO", "http://collector:99999"),
            ("SHIP_LOGS_TO", "http://collector/#part"),
            ("SHIP_LOGS_KIND", "syslog"),
            ("SHIP_LOGS_HEADERS", "Bearer s3cret-value"),
            ("SHIP_LOGS_HEADERS", "Authorization: s3cret-välue"),
            ("SHIP_LOGS_HEADERS", "Content-Type: text/plain"),
            ("SHIP_LOGS_LABELS", "env"),
            ("SHIP_LOGS_LABELS", "a-b=c"),
            ("SHIP_LOGS_LABELS", "workspace=mine"),
            ("SHIP_LOGS_LABELS", ",".join(f"l{number}=x" for number in range(9))),
            ("SHIP_LOGS_CA", "/does/not/exist.pem"),
            ("SHIP_LOGS_LINE_BYTES", "100"),
            ("SHIP_LOGS_LINE_BYTES", "1000000"),
        ],
    )
    def test_a_wrong_setting_is_named(self, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
        monkeypatch.setenv("SHIP_LOGS_TO", "http://collector")
        monkeypatch.setenv(name, value)
        with pytest.raises(EnvError, match=name) as error:
            shipping_settings.hub_destination()
        assert "s3cret" not in str(error.value)

    def test_all_settings_together(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "headers").write_text("Authorization: Bearer x\nX-Scope-OrgID: tenant\n")
        ca, _, _ = _certificates(tmp_path)
        for name, value in {
            "TO": "https://loki.example.org",
            "KIND": "loki",
            "HEADERS_FILE": str(tmp_path / "headers"),
            "LABELS": "env=prod, site=north",
            "CA": str(ca),
        }.items():
            monkeypatch.setenv(f"SHIP_LOGS_{name}", value)
        named = shipping_settings.hub_destination()
        assert named is not None
        assert named.headers == {"Authorization": "Bearer x", "X-Scope-OrgID": "tenant"}
        assert named.labels == {"env": "prod", "site": "north"}
        assert "Bearer" not in repr(named)
        monkeypatch.delenv("SHIP_LOGS_HEADERS_FILE")
        monkeypatch.setenv("SHIP_LOGS_HEADERS", "A: 1; B: 2")
        again = shipping_settings.hub_destination()
        assert again is not None
        assert again.headers == {"A": "1", "B": "2"}


def test_tls_with_an_authority_of_ones_own(shipping: Shipping, settings: Any, tmp_path: Path) -> None:
    ca, chain, key = _certificates(tmp_path)
    with listening((chain, key)) as server:
        url = f"https://127.0.0.1:{server.port}/v1/logs"
        shipping.kind("otlp", url=url)
        shipping.say("one\n")
        assert "certificate verify failed" in shipping.ship().last_error
        shipping.kind("otlp", url=url, ca=ca.read_text())
        shipping.ship()
        assert server.texts() == ["one"]


class TestCommand:
    def test_a_test_line_arrives(self, shipping: Shipping, receiver: LogReceiver) -> None:
        out = StringIO()
        call_command("ship-logs", "--test", stdout=out)
        assert receiver.texts()[0] in out.getvalue()
        receiver.answers = [(401, {}, b"no org id")]
        with pytest.raises(CommandError, match="401 Unauthorized: no org id"):
            call_command("ship-logs", "--test")

    def test_it_says_how_a_target_is_doing(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(503, {}, b"away")]
        shipping.say("one\n")
        shipping.ship()
        out = StringIO()
        call_command("ship-logs", stdout=out)
        assert "all workspaces: failing, otlp, 127.0.0.1" in out.getvalue()
        assert "4 bytes wait" in out.getvalue()
        assert "503" in out.getvalue()

    def test_since_a_time(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.say("old\n")
        LogTarget.objects.all().delete()
        shipping.ship()
        call_command("ship-logs", "--since", "2020-01-01", stdout=StringIO())
        shipping.ship()
        assert receiver.texts() == ["old"]

    @pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-01-01T99:00Z"])
    def test_a_wrong_time_is_refused(self, shipping: Shipping, text: str) -> None:
        with pytest.raises(CommandError, match="--since"):
            call_command("ship-logs", "--since", text)

    def test_nothing_to_test(self, settings: Any, db: None) -> None:
        settings.LOG_DESTINATION = None
        with pytest.raises(CommandError, match="SHIP_LOGS_TO"):
            call_command("ship-logs", "--test")
        with pytest.raises(CommandError, match="no such workspace"):
            call_command("ship-logs", "--test", "--workspace", "nowhere")


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


def test_the_system_page_shows_what_fails(shipping: Shipping, receiver: LogReceiver) -> None:
    receiver.answers = [(401, {}, b"")]
    shipping.say("one\n")
    shipping.ship()
    client = client_of(make_operator())
    page = client.get("/system/").content.decode()
    assert "Log systems" in page
    assert "does not accept the token; check the headers" in page
    (target,) = client.get("/api/v1/system/").json()["log_targets"]
    assert (target["word"], target["behind_bytes"]) == ("failing", 4)


def _certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and what it has issued for 127.0.0.1: files of both certificates and of the key."""
    files = []
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "of tests")])
    host = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    for subject, public, is_ca in ((name, ca_key.public_key(), True), (host, key.public_key(), False)):
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
        )
        file = folder / ("ca.pem" if is_ca else "server.pem")
        file.write_bytes(builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        files.append(file)
    key_file = folder / "key.pem"
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files[0], files[1], key_file
