"""`manage.py check --deploy`: each thing that an operator forgets, and none that is well."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.node_tokens import enrol_node
from clusters.models import Node
from jobs.log_shipping.destinations import Destination
from jobs.models import LogTarget
from tests.hub import Hub
from trainhub.backup.creation import BACKED_UP
from trainhub.deployment import checklist, key_checks, network_checks, operation_checks, server_checks
from trainhub.serving.proxy_faults import note_faults
from workspaces import audit
from workspaces.hub_metrics.publisher import Publisher
from workspaces.models import AuditEvent, Workspace
from workspaces.servers import server_registry
from workspaces.servers.server_registry import OwnProcess

pytestmark = pytest.mark.django_db


def sentence(messages: list[CheckMessage]) -> str:
    """The text of the only message, which has a remedy."""
    (message,) = messages
    assert message.hint
    return str(message.msg)


def open_hub(monkeypatch: pytest.MonkeyPatch, settings: Settings, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings.IS_ON_LOOPBACK_ONLY = False


class TestNetwork:
    def test_plain_http(self, settings: Settings) -> None:
        assert network_checks.plain_http() == []
        settings.IS_ON_LOOPBACK_ONLY = False
        settings.PUBLIC_URL, settings.BEHIND_TLS = "http://10.0.0.1:8000", False
        assert "http://10.0.0.1:8000 by plain HTTP" in sentence(network_checks.plain_http())
        settings.BEHIND_TLS = True
        assert network_checks.plain_http() == []

    def test_a_proxy_that_is_not_named(self, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
        assert network_checks.unnamed_proxies() == []
        open_hub(monkeypatch, settings, OPEN="1", TLS="0", PUBLIC_URL="https://hub.example.org")
        assert "counts as one address" in sentence(network_checks.unnamed_proxies())
        monkeypatch.setenv("TRUSTED_PROXIES", "127.0.0.1")
        assert network_checks.unnamed_proxies() == []

    @pytest.mark.parametrize(
        ("words", "wide"), [("0.0.0.0/0", True), ("::/0", True), ("10.0.0.0/24,fd00::1", False)]
    )
    def test_proxies_that_anybody_can_be(
        self, monkeypatch: pytest.MonkeyPatch, words: str, wide: bool
    ) -> None:
        monkeypatch.setenv("TRUSTED_PROXIES", words)
        assert bool(network_checks.wide_proxies()) == wide
        if wide:
            assert words in sentence(network_checks.wide_proxies())

    @pytest.mark.parametrize(
        ("names", "wide"),
        [("*", True), (".org", True), (".example.org", False), ("hub,hub.example.org", False)],
    )
    def test_hosts_of_others(self, monkeypatch: pytest.MonkeyPatch, names: str, wide: bool) -> None:
        monkeypatch.setenv("ALLOWED_HOSTS", names)
        assert bool(network_checks.wide_hosts()) == wide

    @pytest.mark.parametrize(
        ("name", "url", "warns"),
        [
            ("BROKER_URL", "amqp://hub:secret@broker.example.org/", True),
            ("REDIS_URL", "redis://:secret@10.0.0.7:6379/0", True),
            ("NODE_BROKER_URL", "redis://broker.example.org:6379", True),
            ("BROKER_URL", "amqps://hub:secret@broker.example.org/", False),
            ("REDIS_URL", "redis://127.0.0.1:6379/0", False),
            ("REDIS_URL", "unix:///run/valkey.sock", False),
        ],
    )
    def test_a_broker_without_tls(
        self, monkeypatch: pytest.MonkeyPatch, name: str, url: str, warns: bool
    ) -> None:
        monkeypatch.setenv(name, url)
        messages = network_checks.unencrypted_broker()
        assert bool(messages) == warns
        if warns:
            assert name in sentence(messages)
            assert "secret" not in sentence(messages)

    def test_log_systems_without_tls(self, settings: Settings) -> None:
        now = timezone.now()
        workspace = Workspace.objects.create(slug="vision", name="Vision")
        target = LogTarget(
            workspace=workspace, kind="loki", headers="Authorization: secret", since=now, try_at=now
        )
        for url in ("https://loki.example.org/", "http://127.0.0.1:3100/"):
            target.url = url
            target.save()
            settings.LOG_DESTINATION = Destination("otlp", url)
            assert network_checks.unencrypted_log_systems() == []
        target.url = "http://loki.example.org:3100/"
        target.save()
        settings.LOG_DESTINATION = Destination("otlp", "http://collector.example.org:4318/")
        hub, own = network_checks.unencrypted_log_systems()
        assert "SHIP_LOGS_TO is reached at collector.example.org without TLS" in hub.msg
        assert "the workspace Vision is reached at loki.example.org" in own.msg
        assert "secret" not in own.msg
        assert hub.hint


class TestKeys:
    def test_debug_pages(self, settings: Settings) -> None:
        assert key_checks.debug_pages() == []
        settings.DEBUG = True
        assert "DEBUG=1" in sentence(key_checks.debug_pages())

    def test_keys_that_others_may_read(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
    ) -> None:
        key = tmp_path / "given-key"
        key.write_text("x" * 50)
        key.chmod(0o640)
        monkeypatch.setenv("SECRET_KEY_FILE", str(key))
        settings.SECRETS_KEYRING = tmp_path / "none"
        (message,) = key_checks.readable_keys()
        assert str(key) in message.msg
        subprocess.run(str(message.hint).split(), check=True)
        assert key_checks.readable_keys() == []

    def test_no_backup_and_an_old_one(self) -> None:
        assert "never backed up" in sentence(key_checks.old_backup())
        event = audit.record("command line", BACKED_UP, "one", folder="/mnt")
        assert key_checks.old_backup() == []
        AuditEvent.objects.filter(pk=event.pk).update(at=timezone.now() - timedelta(days=9))
        assert "The last backup is of" in sentence(key_checks.old_backup())

    def test_a_keyring_without_a_copy(self, settings: Settings, tmp_path: Path) -> None:
        settings.SECRETS_KEYRING = keyring = tmp_path / "keys"
        assert key_checks.uncopied_keyring() == []
        keyring.write_text("a key")
        audit.record("command line", BACKED_UP, "one", folder="/mnt", with_keys=False)
        assert "There is no copy of" in sentence(key_checks.uncopied_keyring())
        audit.record("command line", BACKED_UP, "two", folder="/mnt", with_keys=True)
        assert key_checks.uncopied_keyring() == []
        later = timezone.now().timestamp() + 60
        os.utime(keyring, (later, later))
        assert "no copy of the present content" in sentence(key_checks.uncopied_keyring())


class TestOperation:
    @pytest.fixture(autouse=True)
    def _nodes(self) -> None:
        for name in "abcd":
            enrol_node("local", name)

    def test_many_nodes_on_sqlite(self, settings: Settings) -> None:
        if "sqlite" in settings.DATABASES["default"]["ENGINE"]:
            assert "4 nodes report to a hub on SQLite" in sentence(operation_checks.small_database())
            Node.objects.filter(name="a").delete()
        assert operation_checks.small_database() == []

    def test_no_index_of_names(self) -> None:
        assert operation_checks.unindexed_names() == []
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("DROP INDEX run_name_parts")
            assert "lacks the index run_name_parts" in sentence(operation_checks.unindexed_names())

    def test_no_mail_server(self, settings: Settings) -> None:
        assert "no mail server" in sentence(operation_checks.no_mail())
        settings.EMAIL_URL = "smtp://mail.example.org"
        assert operation_checks.no_mail() == []

    def test_a_disk_that_is_nearly_full(self, settings: Settings) -> None:
        settings.ALERT_DISK_FREE_BYTES = 0
        free_share = shutil.disk_usage(settings.DATA_DIR).free / shutil.disk_usage(settings.DATA_DIR).total
        assert bool(operation_checks.full_disk()) == (free_share < operation_checks.MIN_FREE_SHARE)
        settings.ALERT_DISK_FREE_BYTES = 2**60
        assert "GiB free" in sentence(operation_checks.full_disk())

    def test_a_clock_that_differs_from_those_of_all_nodes(self) -> None:
        Node.objects.update(clock_offset_s=-61.0)
        assert "61 s behind" in sentence(operation_checks.wrong_clock())
        Node.objects.update(clock_offset_s=0.1)
        kernel_says = operation_checks.is_clock_unsynchronised()
        assert bool(operation_checks.wrong_clock()) == kernel_says
        Node.objects.filter(name="a").update(clock_offset_s=500)  # that node's own fault
        assert bool(operation_checks.wrong_clock()) == kernel_says

    def test_agents_of_another_version(self) -> None:
        assert operation_checks.outdated_agents() == []
        Node.objects.filter(name="b").update(agent_version="0.0.9")
        assert "version: b." in sentence(operation_checks.outdated_agents())


class TestServersAndProxies:
    def test_servers_that_differ(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert server_checks.unequal_servers() == []
        # One row for each server, as PostgreSQL has them.
        monkeypatch.setattr(server_registry, "is_shareable", lambda: True)
        for name, offset_s in (("a", 0.0), ("b", 61.0)):
            own = OwnProcess(server_registry.WEB)
            monkeypatch.setattr(server_registry, "own_name", lambda name=name: name)
            monkeypatch.setattr(server_registry, "clock_offset_s", lambda offset_s=offset_s: offset_s)
            server_registry.register_process(own)
        assert "The clock of server b (web) is 61 s ahead" in sentence(server_checks.unequal_servers())

    def test_a_proxy_that_removes_headers(self, settings: Settings) -> None:
        settings.PUBLIC_URL = "https://hub.example.org"
        web = Publisher("web", "0.1.0")
        web.publish()
        whole = [
            (b"host", b"hub.example.org"),
            (b"x-forwarded-for", b"::1"),
            (b"x-forwarded-proto", b"https"),
        ]
        note_faults(b"/runs/", whole)
        note_faults(b"/ws/runs/", [*whole, (b"upgrade", b"websocket")])
        note_faults(b"/healthz", whole[:1])
        # An agent beside the hub.
        note_faults(b"/api/v1/node/report/", [(b"host", b"127.0.0.1:8000")])
        web.publish()
        assert network_checks.removed_headers() == []
        note_faults(b"/ws/runs/", whole)
        web.publish()
        assert "without the header Upgrade: pages have no live updates" in sentence(
            network_checks.removed_headers()
        )


def test_every_check_is_on_the_list() -> None:
    modules = (network_checks, key_checks, operation_checks, server_checks)
    own = {
        value
        for module in modules
        for value in vars(module).values()
        if getattr(value, "__module__", "") == module.__name__
        and value.__annotations__.get("return") == "list[CheckMessage]"
    }
    assert own == set(checklist.CHECKS)


@pytest.mark.slow
def test_the_command_names_what_was_forgotten_and_django_adds_nothing(own_hub: Hub) -> None:
    own_hub.start()
    said = own_hub.manage("check", "--deploy").stderr
    assert "trainhub.W010" in said
    assert "security." not in said
    own_hub.manage(
        "backup", str(own_hub.data_dir.parent / "b"), "--with-keys", str(own_hub.data_dir.parent / "k")
    )
    said = own_hub.manage("check", "--deploy").stderr
    assert "trainhub.W010" not in said
    assert "trainhub.W011" not in said


def test_before_the_first_migration_there_is_no_error(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data")
    assert "never backed up" in hub.manage("check", "--deploy").stderr
