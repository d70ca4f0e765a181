"""Whether two servers of one hub were given the same Valkey, broker, folder and settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from django.db.models.functions import Now
from pytest_django import Settings

from tests.clusters.rabbitmq import rabbit
from tests.hub import free_port
from tests.servers.valkey_server import another_valkey
from trainhub.upgrade.setting_names import documented_settings
from workspaces.object_store.configuration import StoreConfiguration
from workspaces.secrets import store
from workspaces.servers import differences, meeting_places, meetings, server_registry, shared_settings
from workspaces.servers.meeting_places import AmqpPlace, FolderPlace, MeetingPlace, RedisPlace
from workspaces.servers.meetings import LOOKS, MeetingThread, strange_places
from workspaces.servers.models import ServerProcess
from workspaces.servers.server_registry import WEB, WORKER, OwnProcess

# What may differ by machine, what is no value to compare, and what the places prove.
OF_A_MACHINE = {
    "DATA_DIR",
    "DEMO_DIR",
    "OPEN",
    "BIND",
    "SERVER_ADDRESS",
    "SERVER_NAME",
    "ALLOWED_HOSTS",
    "AUDIT_HEADS",
    "DEBUG",
    "LOG_LEVEL",
    "LOG_FORMAT",
    "LOG_TO",
    "DATABASE_URL",
    "DATABASE_POOL",
    "REDIS_URL",
    "BROKER_URL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "NODE_DIR",
    "LOCAL_NODE",
    "RUN_AS",
    "HUB_AS",
    "BROKER_BIND",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "TLS",
    "TRUSTED_PROXIES",
    "BLOB_STORE_REGION",
    "BLOB_STORE_MAKE_BUCKET",
    "BLOB_STORE_KEY_ID",
    "BLOB_STORE_SECRET",
    "BLOB_STORE_CA_FILE",
    "BLOB_STORE_PATH_STYLE",
    "BLOB_CACHE_BYTES",
    "BLOB_STORE_PUBLIC_ENDPOINT",
    "NODE_PROVIDERS",
    "GIT_KNOWN_HOSTS",
    "PYTEST",
}
OF_NODES_AND_TESTS = "TRAINHUB_"
OF_SIGNING_IN = ("PASSWORD_SIGN_IN", "OPERATORS_NEED_SECOND_FACTOR", "OIDC_", "REMOTE_USER_", "SIGN_IN_")


def row(name: str, part: str = WEB, **facts: object) -> ServerProcess:
    own = OwnProcess(part)
    server_registry.register_process(own)
    ServerProcess.objects.filter(pk=own.id).update(name=name, machine=name, **facts)
    return ServerProcess.objects.get(pk=own.id)


def warnings() -> list[tuple[str, str]]:
    """The setting and the server of each; each has its remedy."""
    found = differences.warnings_of(list(server_registry.compared_processes()))
    assert all(warning.remedy.endswith(".") and warning.server in warning.text for warning in found)
    return [(warning.setting, warning.server) for warning in found]


class TestPlaces:
    def meet(self, place: MeetingPlace, other: MeetingPlace) -> None:
        """Marks are visible at the same place, and at no other one."""
        assert place.visit("a", ["b"]) == {"b"}
        assert place.visit("b", ["a"]) == set()
        assert place.visit("a", ["b"]) == set()
        assert place.visit("", ["a", "b", "c"]) == {"c"}
        assert other.visit("c", ["a", "b"]) == {"a", "b"}

    def test_a_valkey(self, valkey: str) -> None:
        with another_valkey() as other:
            self.meet(RedisPlace("REDIS_URL", valkey), RedisPlace("REDIS_URL", other))
        with pytest.raises(meeting_places.PlaceUnreachable):
            RedisPlace("REDIS_URL", other).visit("a", [])

    def test_a_folder(self, tmp_path: Path) -> None:
        self.meet(FolderPlace(tmp_path / "one"), FolderPlace(tmp_path / "two"))
        (tmp_path / "file").touch()
        with pytest.raises(meeting_places.PlaceUnreachable):
            FolderPlace(tmp_path / "file").visit("a", [])

    @pytest.mark.slow
    def test_a_virtual_host_of_rabbitmq(self, tmp_path: Path) -> None:
        with rabbit(tmp_path) as server:
            place = AmqpPlace("BROKER_URL", server.url)
            assert place.visit("a", ["b"]) == {"b"}
            assert place.visit("b", ["a"]) == set()
            assert place.visit("a", ["b", "c"]) == {"c"}
        with pytest.raises(meeting_places.PlaceUnreachable):
            place.visit("a", [])

    def test_the_broker_is_a_place_of_its_own_where_it_is_another_one(self, settings: Settings) -> None:
        def names() -> list[str]:
            return [place.setting for place in meeting_places.meeting_places()]

        settings.REDIS_URL, settings.BROKER_URL = "unix:///run/v?db=1", "redis+socket:///run/v?virtual_host=1"
        assert names() == ["REDIS_URL", "DATA_DIR"]
        settings.BROKER_URL = "amqp://broker.example.org//"
        assert names() == ["REDIS_URL", "BROKER_URL", "DATA_DIR"]


@pytest.mark.django_db
class TestMeetings:
    @pytest.fixture(autouse=True)
    def _places(self, settings: Settings, tmp_path: Path, valkey: str) -> None:
        settings.DATA_DIR, settings.REDIS_URL, settings.BROKER_URL = tmp_path, valkey, valkey

    def server(self, name: str) -> MeetingThread:
        own = OwnProcess(WEB)
        server_registry.register_process(own)
        ServerProcess.objects.filter(pk=own.id).update(name=name, machine=name)
        return MeetingThread(own)

    def look(self, *servers: MeetingThread) -> None:
        for _ in range(LOOKS + 1):
            for server in servers:
                server.look_once()

    def test_servers_of_one_valkey_and_folder_see_each_other(self) -> None:
        self.look(self.server("a"), self.server("b"))
        assert warnings() == []

    def test_another_valkey_is_noticed_and_no_longer_once_it_is_mended(self, settings: Settings) -> None:
        first = self.server("a")
        with another_valkey() as other:
            settings.REDIS_URL = settings.BROKER_URL = other
            second = self.server("b")
            self.look(first, second)
            assert warnings() == [("REDIS_URL", "b")]
        second._places = first._places
        self.look(first, second)
        assert warnings() == []

    def test_another_broker_beside_the_same_valkey(self, settings: Settings) -> None:
        with another_valkey() as one, another_valkey() as two:
            settings.BROKER_URL = one
            first = self.server("a")
            settings.BROKER_URL = two
            second = self.server("b")
            self.look(first, second)
            assert warnings() == [("BROKER_URL", "b")]

    def test_a_copy_of_the_folder(self, settings: Settings, tmp_path: Path) -> None:
        first = self.server("a")
        settings.DATA_DIR = tmp_path / "copy"
        self.look(first, self.server("b"))
        assert warnings() == [("DATA_DIR", "b")]

    def test_a_valkey_that_was_emptied_or_is_away_is_no_other_one(
        self, settings: Settings, valkey: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        servers = self.server("a"), self.server("b")
        self.look(*servers)
        with redis.Redis.from_url(valkey) as server:
            server.flushall()
        self.look(*servers)
        assert warnings() == []
        settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
        away = self.server("c")
        self.look(*servers, away)
        assert warnings() == []
        assert caplog.text.count("Whether all servers use the same REDIS_URL is not known now") == 1

    def test_a_server_of_the_version_before_is_not_judged(self) -> None:
        first = self.server("a")
        row("old", settings=None)
        self.look(first)
        assert warnings() == []

    def test_one_that_starts_learns_it_before(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(meetings, "LOOK_EVERY_S", 0.05)
        self.look(self.server("a"))
        assert differences.start_refusal() == ""
        with another_valkey() as other:
            settings.REDIS_URL = settings.BROKER_URL = other
            assert [*strange_places(list(server_registry.compared_processes()))] == ["REDIS_URL"]
            refusal = differences.start_refusal()
        assert refusal.startswith("REDIS_URL leads elsewhere than that of server a, which lives")


@pytest.mark.django_db
class TestSettings:
    def test_each_setting_is_compared_or_belongs_to_a_machine(self, settings: Settings) -> None:
        settings.BLOB_STORE = _store()
        documented = {
            name for name in documented_settings() - OF_A_MACHINE if not name.startswith(OF_NODES_AND_TESTS)
        }
        documented -= {name for name in documented if name.startswith(OF_SIGNING_IN)}
        assert documented - shared_settings.own_codes().keys() - {"PROVIDER_ENV"} == set()

    def test_codes_tell_no_value(self, settings: Settings) -> None:
        settings.EMAIL_URL = "smtp://user:secret-password@mail.example.org"
        text = repr(shared_settings.own_codes())
        assert "secret" not in text
        assert "mail" not in text

    @pytest.mark.parametrize(
        ("name", "value"),
        [("PUBLIC_URL", "https://other.example.org"), ("PURGE_DAYS", 3.0), ("SECRET_KEY", "another")],
    )
    def test_a_difference_names_the_setting_alone(self, settings: Settings, name: str, value: object) -> None:
        row("a")
        setattr(settings, name, value)
        row("b")
        row("b", WORKER)
        assert warnings() == [(name, "b")]

    def test_between_two_versions_only_what_loses_data_counts(self, settings: Settings) -> None:
        row("a")
        settings.PURGE_DAYS, settings.PUBLIC_URL = 3.0, "https://other.example.org"
        row("b", version="9.9")
        assert warnings() == [("PUBLIC_URL", "b")]

    def test_keys_for_secrets_are_compared_by_what_the_file_holds(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        settings.SECRETS_KEYRING = tmp_path / "one"
        store.make_keyring()
        row("a")
        settings.SECRETS_KEYRING = tmp_path / "two"
        (tmp_path / "two").write_bytes((tmp_path / "one").read_bytes())
        (tmp_path / "two").chmod(0o600)
        row("b")
        assert warnings() == []
        settings.SECRETS_KEYRING = tmp_path / "none"
        row("c")
        assert warnings() == [("SECRETS_KEYRING", "c")]

    def test_a_server_that_would_lose_files_does_not_start_and_another_one_does(
        self, settings: Settings
    ) -> None:
        row("a")
        settings.PURGE_DAYS = 3.0
        assert differences.start_refusal() == ""
        settings.BLOB_STORE = _store()
        refusal = differences.start_refusal()
        assert refusal.startswith("BLOB_STORE of this server and of server a, which lives, differ.")
        assert "stop all servers first" in refusal

    def test_a_clock_that_is_a_minute_off(self) -> None:
        row("a")
        row("b", clock_offset_s=-61.0, renewed_at=Now())
        (warning,) = differences.warnings_of(list(server_registry.compared_processes()))
        assert warning.text == "The clock of server b (web) is 61 s behind that of the database."
        assert "timedatectl set-ntp true" in warning.remedy


def _store() -> StoreConfiguration:
    return StoreConfiguration("bucket", endpoint="https://s3.example.org")
