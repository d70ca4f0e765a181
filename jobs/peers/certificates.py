"""The certificates with which nodes show each other who they are. The hub makes one when a node begins to
give data to others; it keeps its SHA-256 only, by which the others know it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

# An agent may run for long without a restart. Nobody looks at the dates: the certificate is known as a whole.
LIVES = timedelta(days=3652)
CLOCKS_DIFFER_BY = timedelta(days=1)


class PeerCertificate(NamedTuple):
    """Certificate and key as PEM; the SHA-256 of the certificate in hexadecimal digits."""

    certificate: str
    key: str
    fingerprint: str


def make_certificate(name: str) -> PeerCertificate:
    """Returns a new certificate for the node with this name, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + LIVES)
        .sign(key, hashes.SHA256())
    )
    return PeerCertificate(
        certificate.public_bytes(Encoding.PEM).decode(),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        certificate.fingerprint(hashes.SHA256()).hex(),
    )
