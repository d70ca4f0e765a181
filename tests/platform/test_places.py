"""Readers of the environment: what they accept, what they refuse and how they say it."""

from __future__ import annotations

import json
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest

from trainhub import addresses, env, installation


class TestBind:
    @pytest.mark.parametrize(
        ("text", "url"), [("127.0.0.1:8000", "http://127.0.0.1:8000"), ("[::1]:80", "http://[::1]:80")]
    )
    def test_is_an_address_and_a_port(self, monkeypatch: pytest.MonkeyPatch, text: str, url: str) -> None:
        monkeypatch.setenv("BIND", text)
        assert installation.bind().local_url == url

    def test_on_every_address_is_reached_by_loopback(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BIND", "0.0.0.0:9000")
        assert installation.bind().local_url == "http://127.0.0.1:9000"

    @pytest.mark.parametrize("text", ["8000", "host:", "host:0", "host:65536", "host:http"])
    def test_refuses_anything_else_by_name(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("BIND", text)
        with pytest.raises(env.EnvError, match="BIND="):
            installation.bind()


class TestHosts:
    def test_localhost_and_the_public_name_always_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUBLIC_URL", "https://hub.example.org/")
        assert {"localhost", "127.0.0.1", "[::1]", "hub.example.org"} <= set(installation.own_hosts())
        assert "*" not in installation.own_hosts()

    def test_a_command_given_nothing_asks_the_trainhub_that_runs(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv("PUBLIC_URL", raising=False)
        monkeypatch.delenv("BIND", raising=False)
        monkeypatch.setattr(installation, "SERVICES_FILE", tmp_path / "services.json")
        assert installation.stored_public_url() == "http://trainhub.localhost:8000"
        assert installation.stored_api_url() == "http://127.0.0.1:8000"
        told = {"public_url": "http://trainhub.localhost:8790", "api_url": "http://127.0.0.1:8790"}
        installation.SERVICES_FILE.write_text(json.dumps(told))
        assert (installation.stored_public_url(), installation.stored_api_url()) == (
            told["public_url"],
            told["api_url"],
        )
        monkeypatch.setenv("BIND", "127.0.0.1:9000")
        assert installation.stored_public_url() == "http://trainhub.localhost:9000"
        assert installation.stored_api_url() == "http://127.0.0.1:9000"

    @pytest.mark.parametrize("text", ["hub.example.org", "ftp://hub", "https://hub/path"])
    def test_a_public_url_that_is_none_is_refused(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("PUBLIC_URL", text)
        with pytest.raises(env.EnvError, match="PUBLIC_URL="):
            installation.public_url()


@pytest.mark.parametrize("text", ["inf", "1e400", "nan", "1.5", "many", "0"])
def test_a_whole_number_is_finite_and_whole(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("UPLOADS", text)
    with pytest.raises(env.EnvError, match="UPLOADS="):
        env.integer("UPLOADS", 5, least=1)


class TestAddressForPrograms:
    """S15: browsers get a host name whose cookies no other port sees; programs, which often do not find it,
    an address."""

    @pytest.mark.parametrize(("bind", "public", "api"), [
        ("127.0.0.1:8000", "http://trainhub.localhost:8000", "http://127.0.0.1:8000"),
        ("localhost:8000", "http://trainhub.localhost:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://trainhub.localhost:8000", "http://[::1]:8000"),
        ("127.0.0.2:8000", "http://127.0.0.2:8000", "http://127.0.0.2:8000"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ])  # fmt: skip
    def test_only_a_hub_of_this_machine_alone_has_two(
        self, monkeypatch: pytest.MonkeyPatch, bind: str, public: str, api: str
    ) -> None:
        monkeypatch.setenv("BIND", bind)
        assert (installation.public_url(), installation.api_url()) == (public, api)

    @pytest.mark.parametrize(("given", "api"), [
        ({"PUBLIC_URL": "https://hub.example.org"}, "https://hub.example.org"),
        ({"PUBLIC_URL": "http://mine.localhost:8000"}, "http://127.0.0.1:8000"),
        ({"PUBLIC_URL": "http://mine.localhost:8000", "API_URL": "http://10.0.0.1:8000"},
            "http://10.0.0.1:8000"),
        ({"PUBLIC_URL": "https://hub.example.org", "API_URL": "https://api.example.org/"},
            "https://api.example.org"),
    ])  # fmt: skip
    def test_is_the_one_for_browsers_unless_only_they_find_it(
        self, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], api: str
    ) -> None:
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        assert installation.api_url() == api

    def test_is_never_a_name_below_localhost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("API_URL", "http://trainhub.localhost:8000")
        with pytest.raises(env.EnvError, match=r"API_URL=.* use http://127\.0\.0\.1:8000"):
            installation.api_url()

    def test_both_are_answered_to(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("API_URL", "http://api.example.org")
        assert {"trainhub.localhost", "api.example.org", "127.0.0.1"} <= set(installation.own_hosts())


class TestOpen:
    @pytest.fixture(autouse=True)
    def _open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPEN", "1")

    def test_one_switch_is_enough(self) -> None:
        assert installation.bind() == ("0.0.0.0", 8000)  # noqa: S104
        assert installation.broker_bind() == ("0.0.0.0", 8001)  # noqa: S104
        assert installation.public_url().startswith("https://")
        assert "127.0.0.1" not in installation.public_url()
        assert installation.agent_url() == "https://127.0.0.1:8000"

    def test_the_certificate_names_whatever_leads_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUBLIC_URL", "https://hub.example.org")
        monkeypatch.setenv("ALLOWED_HOSTS", "hub,.example.org,*")
        named = set(installation.certificate_hosts())
        assert {
            "localhost",
            "127.0.0.1",
            "::1",
            "hub.example.org",
            "hub",
            socket.gethostname(),
            *addresses.local(),
        } <= named
        assert not named & {"*", ".example.org"}

    def test_the_brokers_port_can_be_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BROKER_BIND", "10.0.0.1:7000")
        assert installation.broker_bind() == ("10.0.0.1", 7000)
        monkeypatch.setenv("BROKER_BIND", "7000")
        with pytest.raises(env.EnvError, match="BROKER_BIND="):
            installation.broker_bind()

    def test_behind_a_proxy_it_speaks_plain_http_and_needs_the_proxys_address(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TLS", "0")
        with pytest.raises(env.EnvError, match="PUBLIC_URL"):
            installation.certificate()
        monkeypatch.setenv("PUBLIC_URL", "https://hub.example.org")
        assert installation.certificate() is None
        assert installation.bind().local_url == "http://127.0.0.1:8000"

    def test_a_certificate_of_ones_own_is_not_vouched_for_by_the_hub(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TLS_CERT_FILE", "/etc/hub.pem")
        with pytest.raises(env.EnvError, match="belong together"):
            installation.certificate()
        monkeypatch.setenv("TLS_KEY_FILE", "/etc/hub-key.pem")
        monkeypatch.setenv("PUBLIC_URL", "https://hub.example.org")
        assert installation.certificate() == (Path("/etc/hub.pem"), Path("/etc/hub-key.pem"), None)
        assert installation.agent_url() == "https://hub.example.org"

    def test_closed_everything_stays_on_this_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPEN", "0")
        assert (installation.bind(), installation.broker_bind(), installation.certificate()) == (
            ("127.0.0.1", 8000),
            None,
            None,
        )
        monkeypatch.setenv("TLS_CERT_FILE", "/etc/hub.pem")
        monkeypatch.setenv("TLS_KEY_FILE", "/etc/hub-key.pem")
        with pytest.raises(env.EnvError, match="OPEN=1"):
            installation.certificate()


class TestBroker:
    def test_a_socket_of_redis_is_said_in_celerys_way(self) -> None:
        assert (
            installation.broker_of("unix://:p%40ss@/tmp/x/valkey.sock")
            == "redis+socket://:p%40ss@/tmp/x/valkey.sock"
        )

    def test_the_number_of_a_database_is_kept(self) -> None:
        assert (
            installation.broker_of("unix:///tmp/x.sock?db=3") == "redis+socket:///tmp/x.sock?virtual_host=3"
        )

    def test_other_addresses_stay(self) -> None:
        assert installation.broker_of("rediss://host:6380/1") == "rediss://host:6380/1"

    @pytest.mark.parametrize("name", ["REDIS_URL", "BROKER_URL"])
    def test_an_unknown_kind_is_refused_without_telling_the_password(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(name, "memcached://:hidden@host")
        with pytest.raises(env.EnvError, match=name) as error:
            installation.broker_url()
        assert "hidden" not in str(error.value)


class TestServices:
    def test_a_running_up_is_found(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        file = tmp_path / "services.json"
        file.write_text(json.dumps({"redis_url": "unix:///somewhere"}))
        monkeypatch.setattr(installation, "SERVICES_FILE", file)
        monkeypatch.delenv("REDIS_URL")
        assert installation.redis_url() == "unix:///somewhere"

    def test_a_damaged_file_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        file = tmp_path / "services.json"
        file.write_text("{")
        monkeypatch.setattr(installation, "SERVICES_FILE", file)
        with pytest.raises(env.EnvError, match="start it again"):
            installation.services()


class TestReaders:
    @pytest.mark.parametrize("text", ["maybe", "2"])
    def test_a_boolean_is_one_of_few_words(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("DEBUG", text)
        with pytest.raises(env.EnvError, match=f"DEBUG={text}"):
            env.boolean("DEBUG", False)

    @pytest.mark.parametrize("text", ["soon", "nan", "-1", "0.5"])
    def test_a_whole_number_is_one_in_range(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("SESSION_DAYS", text)
        with pytest.raises(env.EnvError, match="SESSION_DAYS="):
            env.integer("SESSION_DAYS", 14, least=1)

    @pytest.mark.parametrize(("text", "is_refused"), [("36500", False), ("36500.5", True), ("1e12", True)])
    def test_a_number_of_days_is_at_most_a_century(
        self, monkeypatch: pytest.MonkeyPatch, text: str, is_refused: bool
    ) -> None:
        monkeypatch.setenv("PURGE_DAYS", text)
        refusal = pytest.raises(env.EnvError, match=f"PURGE_DAYS={text} must be at most 36500")
        with refusal if is_refused else nullcontext():
            assert env.number("PURGE_DAYS", 30, most=env.MOST_DAYS) == float(text)

    def test_a_secret_may_stand_in_a_file(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("from a file\n")
        monkeypatch.setenv("THING_FILE", str(tmp_path / "key"))
        assert env.secret("THING") == "from a file"

    def test_a_missing_secret_file_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("THING_FILE", str(tmp_path / "none"))
        with pytest.raises(env.EnvError, match="THING_FILE="):
            env.secret("THING")
