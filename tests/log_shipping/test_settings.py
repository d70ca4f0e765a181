"""The log system of all runs: its settings, and its command."""

from __future__ import annotations

import datetime
import ipaddress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.management import CommandError, call_command

from jobs.log_shipping import destinations
from jobs.log_shipping.models import LogTarget
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import LogReceiver, listening
from tests.people import (
    client_of,
    make_operator,
)
from trainhub.env import EnvError
from trainhub.logs import shipping_settings

pytestmark = pytest.mark.django_db


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
