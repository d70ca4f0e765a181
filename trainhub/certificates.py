"""The hub's own certificate authority and the certificate of its web server, for hubs without a certificate
of a public authority."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trainhub.files import write_secret

CA_LIVES = timedelta(days=3652)
# Some systems refuse certificates of servers that live longer than 825 days.
SERVER_LIVES = timedelta(days=800)
RENEWED_BEFORE = timedelta(days=30)
CLOCKS_DIFFER_BY = timedelta(days=1)
SIGNING_ONLY = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": True,
    "crl_sign": True,
    "encipher_only": False,
    "decipher_only": False,
}


class AuthorityDamaged(Exception):
    """The authority cannot be used. The message names the files and says what to do."""


def ensure(folder: Path, hosts: Sequence[str], now: datetime | None = None) -> None:
    """Makes missing certificates in `folder`: an authority once, and a server certificate whenever its names
    change or its end is near. `now` is for tests.

    Nodes pin the authority, and a new one would lock all of them out. So a damaged one is not replaced, but
    raises AuthorityDamaged."""
    at = now or datetime.now(UTC)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / "ca.pem").exists():
        _make_authority(folder, at)
    authority, key = _authority(folder)
    if not _holds(folder / "server.pem", authority, hosts, at):
        _make_server(folder, authority, key, hosts, at)


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        key = load_pem_private_key((folder / "ca-key.pem").read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError) as error:
        raise AuthorityDamaged(_damaged(folder)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise AuthorityDamaged(_damaged(folder))
    return certificate, key


def _damaged(folder: Path) -> str:
    remedy = (
        "Restore both from a backup; where there is none, remove the folder and let every other "
        "machine join again."
    )
    return f"ca.pem and ca-key.pem in {folder}, by which nodes know this hub, are damaged. {remedy}"


def _make_authority(folder: Path, at: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"TrainHub authority {x509.random_serial_number():x}"[:40])]
    )
    certificate = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - CLOCKS_DIFFER_BY)
        .not_valid_after(at + CA_LIVES)
        # path_length=0: the authority may sign servers, but no further authorities.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**SIGNING_ONLY), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder, "ca", certificate, key)


def _make_server(
    folder: Path,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    at: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    # With elliptic curves TLS servers only sign; key_encipherment belongs to RSA key exchange.
    usage = {**SIGNING_ONLY, "digital_signature": True, "key_cert_sign": False, "crl_sign": False}
    certificate = (
        x509.CertificateBuilder(
            subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "TrainHub")]),
            issuer_name=authority.subject,
            public_key=key.public_key(),
        )
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - CLOCKS_DIFFER_BY)
        # A certificate that outlives its authority is not valid afterwards anyway.
        .not_valid_after(min(at + SERVER_LIVES, authority.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_named(host) for host in hosts]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder, "server", certificate, key)


def _holds(path: Path, authority: x509.Certificate, hosts: Sequence[str], at: datetime) -> bool:
    """Returns whether the certificate at `path` was issued by this authority, belongs to its key, names
    exactly these hosts and is valid for long enough."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        key = load_pem_private_key(path.with_name("server-key.pem").read_bytes(), password=None)
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    is_whole = key.public_key() == certificate.public_key() and set(names) == {_named(host) for host in hosts}
    return is_whole and certificate.not_valid_after_utc - at > RENEWED_BEFORE


def _named(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host.encode("idna").decode())


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    # The key first: after a crash in between `ensure` finds no certificate, or one that does not match, and
    # makes both anew.
    write_secret(
        folder / f"{name}-key.pem",
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    )
    write_secret(folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM).decode())
