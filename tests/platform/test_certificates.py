"""The hub's own authority and certificate, as OpenSSL judges them."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainhub import certificates

HOSTS = ["localhost", "127.0.0.1", "::1", "hub-1", "10.0.0.1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    certificates.ensure(tmp_path / "tls", HOSTS)
    return tmp_path / "tls"


def greeted(folder: Path, asked_for: str, ca: Path | None = None) -> str:
    """What a client that trusts `ca` alone says of the server when it asks for `asked_for`: 'fine', or
    OpenSSL's reason."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem", folder / "server-key.pem")
    client = ssl.create_default_context(cafile=ca or folder / "ca.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # Python's default from 3.13 on
    ours, theirs = socket.socketpair()
    with ours, theirs:
        threading.Thread(target=_serve, args=(server, theirs), daemon=True).start()
        try:
            with client.wrap_socket(ours, server_hostname=asked_for):
                return "fine"
        except ssl.SSLCertVerificationError as error:
            return error.verify_message


def _serve(context: ssl.SSLContext, line: socket.socket) -> None:
    try:
        context.wrap_socket(line, server_side=True)
    except OSError:
        return  # the client has said why


class TestTrust:
    @pytest.mark.parametrize("host", HOSTS)
    def test_holds_for_every_name_and_address(self, folder: Path, host: str) -> None:
        assert greeted(folder, host) == "fine"

    @pytest.mark.parametrize("host", ["evil.example", "10.0.0.2"])
    def test_holds_for_no_other(self, folder: Path, host: str) -> None:
        assert "mismatch" in greeted(folder, host)

    def test_another_hubs_authority_vouches_for_nothing_here(self, folder: Path, tmp_path: Path) -> None:
        certificates.ensure(tmp_path / "other", HOSTS)
        assert greeted(folder, "localhost", tmp_path / "other" / "ca.pem") != "fine"

    def test_keys_are_for_this_account_alone(self, folder: Path) -> None:
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


class TestRenewal:
    def texts(self, folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def changed(self, folder: Path, hosts: list[str] = HOSTS, days: float = 0) -> set[str]:
        before = self.texts(folder)
        certificates.ensure(folder, hosts, datetime.now(UTC) + timedelta(days=days))
        return {name for name, text in self.texts(folder).items() if text != before.get(name)}

    def test_nothing_changes_while_nothing_has_to(self, folder: Path) -> None:
        assert self.changed(folder, [*reversed(HOSTS)], days=700) == set()

    @pytest.mark.parametrize("hosts", [[*HOSTS, "10.0.0.9"], HOSTS[:2]])
    def test_other_names_make_a_new_certificate_of_the_same_authority(
        self, folder: Path, hosts: list[str]
    ) -> None:
        assert self.changed(folder, hosts) == {"server.pem", "server-key.pem"}
        assert greeted(folder, hosts[-1]) == "fine"

    def test_a_near_end_makes_a_new_certificate(self, folder: Path) -> None:
        assert self.changed(folder, days=775) == {"server.pem", "server-key.pem"}

    @pytest.mark.parametrize("name", ["server.pem", "server-key.pem"])
    @pytest.mark.parametrize("how", ["gone", "damaged"])
    def test_what_is_broken_of_the_server_is_made_anew(self, folder: Path, name: str, how: str) -> None:
        (folder / name).write_text("nonsense") if how == "damaged" else (folder / name).unlink()
        certificates.ensure(folder, HOSTS)
        assert greeted(folder, "localhost") == "fine"

    def test_a_key_of_another_certificate_is_noticed(self, folder: Path, tmp_path: Path) -> None:
        certificates.ensure(tmp_path / "other", HOSTS)
        (tmp_path / "other" / "server-key.pem").replace(folder / "server-key.pem")
        certificates.ensure(folder, HOSTS)
        assert greeted(folder, "localhost") == "fine"

    def test_an_authority_that_cannot_be_read_is_never_replaced(self, folder: Path) -> None:
        (folder / "ca-key.pem").write_text("nonsense")
        with pytest.raises(certificates.AuthorityDamaged, match="Restore both"):
            certificates.ensure(folder, HOSTS)
        assert (folder / "ca-key.pem").read_text() == "nonsense"
