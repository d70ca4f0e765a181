"""The login node of a cluster: the hub's key, and what its operator has to do there. Here is no such host."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from pytest_django import Settings

from clusters.allocations import partitions, relays
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.settings import fingerprint, is_host_key, normalize_host_key
from clusters.backends.slurm.ssh_commands import KEY, KNOWN_HOSTS, SshCommands
from clusters.models import SlurmPartition
from clusters.slurm_partitions.relay_checks import check_relay
from tests.clusters.slurm_partitions.builders import make_partition
from tests.people import api_client, client_of, make_operator
from workspaces.models import AuditEvent, HubSecret
from workspaces.secrets import hub_secrets, rotation

pytestmark = pytest.mark.django_db
JSON = "application/json"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBhZzIRTkR5+k5Hl8UEe4A9UBbDdXBqf1PrW3SlR7F0X"
# A name without an address: nothing leaves this machine.
LOGIN = "trainhub@login.invalid"
SETTINGS = {"partition": "main", "command_host": LOGIN, "host_key": HOST_KEY, "login_group": "team"}
ADDRESS = "/api/v1/clusters/hpc/"


def make(**changes: str | int) -> Any:
    body = {"name": "hpc", "kind": "slurm", "slurm": {**SETTINGS, **changes}}
    return api_client(make_operator()).post("/api/v1/clusters/", body, JSON)


def row() -> SlurmPartition:
    return SlurmPartition.objects.get()


def login_node() -> dict[str, Any]:
    return dict(api_client(make_operator()).get(f"{ADDRESS}login-node/").json())


def ssh_files() -> Path:
    commands = partitions.commands_as(row())
    assert isinstance(commands, SshCommands)
    return Path(commands.folder)


class TestKey:
    def test_is_made_with_the_first_login_node_and_kept_encrypted(self) -> None:
        make_partition("other")
        assert not HubSecret.objects.exists()
        assert make().status_code == 201
        secret = HubSecret.objects.get()
        assert b"PRIVATE KEY" not in bytes(secret.sealed)
        private = load_ssh_private_key(hub_secrets.value_of(secret.name).encode(), None)
        public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        assert SlurmPartition.objects.get(cluster__name="hpc").public_key == public
        assert "PRIVATE" not in str(login_node())

    def test_is_a_file_for_ssh_that_only_the_hub_can_read(self) -> None:
        make()
        folder = ssh_files()
        assert stat.S_IMODE((folder / KEY).stat().st_mode) == 0o600
        assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.parents[:2])} == {0o700}
        assert (folder / KNOWN_HOSTS).read_text() == f"login.invalid {HOST_KEY}\n"
        assert sorted(path.name for path in folder.iterdir()) == [KEY, KNOWN_HOSTS]

    def test_each_key_and_host_key_has_connections_of_its_own(self) -> None:
        make()
        first = ssh_files()
        api_client(make_operator()).patch(ADDRESS, {"slurm": {"host_key": f"{HOST_KEY[:-1]}Y"}}, JSON)
        second = ssh_files()
        assert (second != first, first.exists()) == (True, False)
        old = row().public_key
        answer = api_client(make_operator()).post(f"{ADDRESS}login-node/rotate-key/").json()
        assert row().public_key != old
        assert row().public_key in answer["authorized_key"]
        assert (ssh_files() != second, second.exists()) == (True, False)
        (event,) = AuditEvent.objects.filter(verb="cluster.login-key")
        assert event.detail == {"fingerprint": fingerprint(row().public_key)}

    def test_goes_with_its_cluster(self) -> None:
        make()
        folder = ssh_files()
        assert api_client(make_operator()).delete(ADDRESS).status_code == 204
        assert not HubSecret.objects.exists()
        assert not folder.exists()

    def test_outlives_new_keys_of_the_secrets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rotation, "SETTLE_S", 0)
        make()
        before = (ssh_files() / KEY).read_text()
        assert rotation.rotate("test") == 1
        assert hub_secrets.value_of(HubSecret.objects.get().name) == before
        assert hub_secrets.unreadable() == []

    def test_that_cannot_be_read_is_said_with_the_way_out(self, settings: Settings, tmp_path: Path) -> None:
        make()
        settings.SECRETS_KEYRING = tmp_path / "lost" / "keys"
        with pytest.raises(SlurmError, match="The hub's key for the login node cannot be read") as error:
            partitions.commands_as(row())
        assert error.value.fault is SlurmFault.SSH_KEY
        (check, _) = api_client(make_operator()).post(f"{ADDRESS}test/").json()["checks"]
        assert (check["name"], check["result"]) == ("connection", "error")
        assert "restore that file" in check["sentence"]
        assert [name for name, _ in hub_secrets.unreadable()] == [HubSecret.objects.get().name]


class TestSettings:
    def test_no_host_is_trusted_because_it_was_seen_first(self) -> None:
        (error,) = make(host_key="").json()["errors"]
        assert error["field"] == "slurm.host_key"
        assert error["message"].startswith("Enter the host key of login.invalid:22: the content of /etc/ssh/")
        assert not HubSecret.objects.exists()

    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            (f"login.example {HOST_KEY} root@login\n", HOST_KEY),
            (f"# login:22 SSH-2.0\n{HOST_KEY}\n\n[login]:2222 {HOST_KEY}", HOST_KEY),
            ("nonsense", "nonsense"),
        ],
    )
    def test_a_host_key_is_kept_without_names_and_comments(self, text: str, lines: str) -> None:
        assert normalize_host_key(text) == lines

    @pytest.mark.parametrize(
        "text",
        ["ssh-ed25519", "ssh-ed25519 !", "ssh-ed25519 AAAA", HOST_KEY.replace("ed25519", "rsa"), "x y"],
    )
    def test_what_is_no_host_key(self, text: str) -> None:
        assert not is_host_key(text)
        assert is_host_key(HOST_KEY)
        assert [error["field"] for error in make(host_key=text).json()["errors"]] == ["slurm.host_key"]

    def test_a_login_node_that_is_away_is_said(self) -> None:
        make()
        (check, _) = api_client(make_operator()).post(f"{ADDRESS}test/").json()["checks"]
        assert check["sentence"].startswith("The login node cannot be reached.")


class TestInstructions:
    def test_for_members_of_a_group(self) -> None:
        make()
        answer = login_node()
        line = "/usr/bin/python3 -I /usr/local/sbin/trainhub-login team"
        assert answer["authorized_key"] == (
            f'restrict,command="sudo -n {line}" {row().public_key} trainhub-hpc'
        )
        assert f"trainhub ALL=(root) NOPASSWD: {line}\n" in answer["sudoers"]
        assert answer["setup"].count(answer["authorized_key"]) == 1
        assert answer["sudoers"] in answer["setup"]
        assert answer["host_fingerprints"] == [fingerprint(HOST_KEY)]
        assert answer["wrapper"].startswith('"""trainhub-login: ')

    def test_for_the_account_that_logs_in_alone(self) -> None:
        make(login_group="")
        answer = login_node()
        assert answer["authorized_key"].startswith('restrict,command="/usr/bin/python3 -I trainhub-login" ')
        assert (answer["sudoers"], "sudo" in answer["setup"]) == ("", False)

    def test_for_a_relay(self) -> None:
        make(relay_port=80)
        assert not SlurmPartition.objects.exists()
        make(relay_port=8443, relay_host="login")
        answer = login_node()
        allowed = 'port-forwarding,permitlisten="login:8443",permitopen="localhost:1"'
        assert answer["authorized_key"].startswith(f'restrict,{allowed},command="sudo -n ')
        assert answer["sshd"].startswith("Match User trainhub\n    AllowTcpForwarding remote\n")
        assert (
            answer["sshd"].splitlines()[2]
            in client_of(make_operator()).get("/clusters/hpc/edit/").content.decode()
        )

    def test_a_relay_that_nobody_keeps_is_said(self, settings: Settings) -> None:
        make(relay_port=8443, relay_host="login.example")
        assert relays.hub_url_for(row()) == f"{settings.API_URL.partition(':')[0]}://login.example:8443"
        assert relays.trouble_of(row()).startswith("No worker of the hub keeps it yet")
        check = api_client(make_operator()).post(f"{ADDRESS}test/").json()["checks"][-1]
        assert (check["name"], check["result"]) == ("relay", "error")
        assert "does not answer to the name login.example" in check["sentence"]
        settings.ALLOWED_HOSTS = ["login.example", "testserver"]
        problem = check_relay(row(), "login.example", 8443).sentence
        assert "speaks no TLS" in problem
        status = api_client(make_operator()).get(ADDRESS).json()["slurm_status"]
        assert status["relay_trouble"].startswith("No worker of the hub keeps it yet")
        page = client_of(make_operator()).get("/clusters/hpc/", headers={"HX-Request": "true"})
        assert "The relay does not stand" in page.content.decode()

    def test_of_commands_on_the_hubs_machine_there_are_none(self) -> None:
        make_partition()
        client = api_client(make_operator())
        read, rotated = client.get(f"{ADDRESS}login-node/"), client.post(f"{ADDRESS}login-node/rotate-key/")
        assert (read.status_code, rotated.status_code) == (404, 409)
        for answer in (read, rotated):
            assert "has no login node" in answer.json()["detail"]
        assert not HubSecret.objects.exists()

    def test_are_on_the_page_with_the_file(self) -> None:
        make()
        client = client_of(make_operator())
        page = client.get("/clusters/hpc/edit/").content.decode()
        assert "trainhub ALL=(root) NOPASSWD: /usr/bin/python3 -I" in page
        assert row().public_key in page.replace("&#x2B;", "+")
        download = client.get("/clusters/hpc/login-node/wrapper/")
        assert download.content.decode() == login_node()["wrapper"]
        assert 'filename="trainhub-login"' in download["Content-Disposition"]
        before = row().public_key
        assert client.post("/clusters/hpc/login-node/rotate-key/").status_code == 302
        assert row().public_key != before
