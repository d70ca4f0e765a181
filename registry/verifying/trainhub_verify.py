#!/usr/bin/env python3
"""Checks a downloaded model against its certificate, and the certificate against its signature.

    python trainhub_verify.py FOLDER|ZIP [--key FINGERPRINT|PUBLIC_KEY.pem]…

Needs Python 3.9 or newer and the package `cryptography`, and no network. A copy downloaded from a TrainHub
trusts the keys of that TrainHub; --key trusts others instead. Exit status: 0 verified, 1 something differs, 2
cannot be read, 3 everything agrees, but it is not known whether the key can be trusted."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

# Fingerprints of the keys that are trusted where no --key is given.
KNOWN_KEYS: tuple[str, ...] = ()

CERTIFICATE = "trainhub-certificate.json"
SIGNATURE = "trainhub-certificate.json.sig"
TYPE = "trainhub-model-certificate"
# What MLflow's client writes into a folder that it downloads.
ADDED_BY_CLIENTS = frozenset({"registered_model_meta"})

CHUNK_BYTES = 1024 * 1024
MAX_CERTIFICATE_BYTES = 64 * 1024 * 1024
VERIFIED, DIFFERS, UNREADABLE, UNPROVEN = 0, 1, 2, 3
BAD_BYTES = (zipfile.BadZipFile, zlib.error, OSError, RuntimeError)


class UnreadableInput(Exception):
    """There is nothing that could be verified. The message says why."""


class VerificationFinding(NamedTuple):
    # certificate, signature, key, changed, missing or extra
    what: str
    subject: str
    sentence: str


@dataclass
class VerificationReport:
    """`key`: the fingerprint of the key that signed, "" without a valid signature. `notes`: sentences about
    harmless differences."""

    manifest: dict[str, Any] = field(default_factory=dict)
    key: str = ""
    trusted: bool = False
    files: int = 0
    findings: list[VerificationFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        if self.findings:
            return DIFFERS
        return VERIFIED if self.trusted else UNPROVEN

    def add(self, what: str, subject: str, sentence: str) -> None:
        self.findings.append(VerificationFinding(what, subject, sentence))


def canonical_json(value: object) -> bytes:
    """Returns the only permitted JSON of this value: sorted names, no spaces, UTF-8, only whole numbers."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def fingerprint(key: Ed25519PublicKey) -> str:
    """Returns the SHA-256 of the key as DER (SubjectPublicKeyInfo), which `openssl pkey -pubin -outform DER |
    sha256sum` prints as well."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def verify(path: Path, trusted: Iterable[str]) -> VerificationReport:
    """Verifies the model in the folder or zip `path`. `trusted`: fingerprints of trusted keys. Raises
    UnreadableInput."""
    contents, report = _opened(path), VerificationReport()
    certificate = _bytes(contents, CERTIFICATE)
    _check_signature(report, certificate, _bytes(contents, SIGNATURE), frozenset(trusted))
    report.manifest = _manifest(report, certificate)
    _check_key(report)
    _check_files(report, contents)
    return report


class Folder:
    """A model in a folder. `names`: the paths of its files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        files = sorted(item for item in root.rglob("*") if item.is_symlink() or not item.is_dir())
        self.names = [item.relative_to(root).as_posix() for item in files]

    def open(self, name: str) -> IO[bytes]:
        path = self._root / name
        if path.is_symlink() or not path.is_file():
            raise UnreadableInput("it is a link, or not a regular file.")
        return path.open("rb")


class Zip:
    """A model in a zip. `names`: the paths of its files; a damaged or forged zip may have one twice."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        names = [item.filename for item in self._zip.infolist() if not item.is_dir()]
        self._prefix = _only_folder(names)
        self.names = [name[len(self._prefix) :] for name in names]

    def open(self, name: str) -> IO[bytes]:
        return self._zip.open(self._prefix + name)


def _only_folder(names: Sequence[str]) -> str:
    """Returns the folder that contains all files, with a `/` at its end, or "" if there is none."""
    if CERTIFICATE in names:
        return ""
    tops = {name.partition("/")[0] for name in names}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""


def _opened(path: Path) -> Folder | Zip:
    if path.is_dir():
        inner = [item for item in path.iterdir() if not item.name.startswith(".")]
        is_wrapped = (
            not (path / CERTIFICATE).exists() and len(inner) == 1 and (inner[0] / CERTIFICATE).is_file()
        )
        return Folder(inner[0] if is_wrapped else path)
    if not path.is_file():
        raise UnreadableInput(f"{path} does not exist; name the folder or the zip that was downloaded.")
    try:
        return Zip(path)
    except BAD_BYTES as error:
        raise UnreadableInput(
            f"{path} is neither a folder nor a zip that can be read ({error}); download it again."
        ) from error


def _bytes(contents: Folder | Zip, name: str) -> bytes:
    if contents.names.count(name) != 1:
        problem = "is not there" if name not in contents.names else "is there twice"
        raise UnreadableInput(
            f"{name} {problem}; download the whole version, as a zip or with both certificate files."
        )
    try:
        with contents.open(name) as file:
            return file.read(MAX_CERTIFICATE_BYTES)
    except BAD_BYTES as error:
        raise UnreadableInput(f"{name} cannot be read ({error}); download the version again.") from error


def _check_signature(
    report: VerificationReport, certificate: bytes, signature: bytes, trusted: frozenset[str]
) -> None:
    try:
        fields = json.loads(signature)
        key = load_pem_public_key(str(fields["public_key"]).encode())
        value, digest = bytes.fromhex(fields["signature"]), str(fields["certificate_sha256"])
    except (ValueError, KeyError, TypeError, UnsupportedAlgorithm) as error:
        report.add(
            "signature", SIGNATURE, f"{SIGNATURE} is damaged: no signature can be read in it ({error})."
        )
        return
    if not isinstance(key, Ed25519PublicKey):
        report.add("signature", SIGNATURE, f"{SIGNATURE} holds no Ed25519 key.")
        return
    try:
        key.verify(value, certificate)
    except InvalidSignature:
        is_same = hashlib.sha256(certificate).hexdigest() == digest
        if is_same:
            report.add(
                "signature", SIGNATURE, "The signature was changed: the key beside it did not make it."
            )
        else:
            report.add(
                "certificate",
                CERTIFICATE,
                f"{CERTIFICATE} was changed after signing, or the signature is another's.",
            )
        return
    report.key = fingerprint(key)
    report.trusted = report.key in trusted
    if trusted and not report.trusted:
        report.add(
            "key",
            report.key,
            f"Signed by the key {report.key}, which is not one of those that are trusted here.",
        )


def _manifest(report: VerificationReport, certificate: bytes) -> dict[str, object]:
    try:
        manifest = json.loads(certificate, object_pairs_hook=_once)
        is_ours = canonical_json(manifest) == certificate and _has_our_form(manifest)
    except (ValueError, RecursionError) as error:
        report.add("certificate", CERTIFICATE, f"{CERTIFICATE} is damaged: it is not JSON ({error}).")
        return {}
    if not is_ours:
        report.add(
            "certificate",
            CERTIFICATE,
            f"{CERTIFICATE} is not in the form that TrainHub writes, or of a newer one.",
        )
        return {}
    return dict(manifest)


def _has_our_form(manifest: Any) -> bool:
    try:
        paths = [item["path"] for item in manifest["files"]]
        texts = [*paths, *(item["sha256"] for item in manifest["files"])]
        texts += [manifest["issuer"]["key"], manifest["issued_at"], manifest["model"]["name"]]
        numbers = [item["size_bytes"] for item in manifest["files"]] + [manifest["model"]["number"]]
    except (KeyError, TypeError):
        return False
    is_our_type = (manifest.get("type"), manifest.get("version")) == (TYPE, 1) and len(set(paths)) == len(
        paths
    )
    return (
        is_our_type
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) for number in numbers)
    )


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _check_key(report: VerificationReport) -> None:
    """Checks that the certificate was signed with the key that it names."""
    if report.manifest and report.key and report.manifest["issuer"]["key"] != report.key:
        named = report.manifest["issuer"]["key"]
        report.add("key", report.key, f"Signed by the key {report.key}, while the certificate names {named}.")


def _check_files(report: VerificationReport, contents: Folder | Zip) -> None:
    listed = {item["path"]: item for item in report.manifest.get("files", ())}
    there = Counter(name for name in contents.names if name not in (CERTIFICATE, SIGNATURE))
    for name in sorted(there.keys() - listed.keys()):
        if name in ADDED_BY_CLIENTS:
            report.notes.append(f"{name} was added by MLflow's client; the certificate does not mention it.")
        elif report.manifest:
            report.add("extra", name, f"{name} is extra: the certificate does not list it.")
    for name, item in sorted(listed.items()):
        report.files += 1
        if not there[name]:
            report.add("missing", name, f"{name} is missing.")
        elif there[name] > 1:
            report.add("changed", name, f"{name} is there {there[name]} times.")
        elif (difference := _difference(contents, name, item)) is not None:
            report.add("changed", name, difference)


def _difference(contents: Folder | Zip, name: str, item: dict[str, object]) -> str | None:
    digest, size = hashlib.sha256(), 0
    try:
        with contents.open(name) as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except UnreadableInput as error:
        return f"{name} differs: {error}"
    except BAD_BYTES as error:
        return f"{name} differs: its bytes are damaged ({error})."
    if size != item["size_bytes"]:
        return f"{name} differs: it has {size} bytes, and the certificate says {item['size_bytes']}."
    if digest.hexdigest() != item["sha256"]:
        return (
            f"{name} differs: its SHA-256 is {digest.hexdigest()}, and the certificate says {item['sha256']}."
        )
    return None


def summary_lines(report: VerificationReport) -> list[str]:
    """Returns the report as lines for a person."""
    model = report.manifest.get("model", {})
    title = f"{model['name']} version {model['number']}" if model else "The model"
    lines = [finding.sentence for finding in report.findings] + report.notes
    if report.status == DIFFERS:
        return [
            *lines,
            f"NOT VERIFIED: {title}: {len(report.findings)} finding{'s' * (len(report.findings) != 1)}.",
        ]
    lines += [f"Signed by the key {report.key} on {report.manifest['issued_at']}."]
    if report.status == UNPROVEN:
        lines += [
            (
                "It is not known whose key that is: compare it with the Settings of that TrainHub, "
                "and pass it as --key."
            )
        ]
        return [*lines, f"INTACT, KEY NOT TRUSTED YET: {title}: {report.files} files agree."]
    return [*lines, f"VERIFIED: {title}: {report.files} files are as they were registered."]


def fingerprint_of(text: str) -> str:
    """Returns the fingerprint that `text` is, or that of the public key in the file `text`. Raises
    UnreadableInput."""
    plain = re.sub(r"[:\s]", "", text.lower().removeprefix("sha256:"))
    if re.fullmatch(r"[0-9a-f]{64}", plain):
        return plain
    try:
        key = load_pem_public_key(Path(text).read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableInput(
            f"--key {text}: neither a fingerprint of 64 hexadecimal digits nor a public key in PEM."
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UnreadableInput(f"--key {text}: holds no Ed25519 key.")
    return fingerprint(key)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Verify a model that was downloaded from TrainHub.")
    parser.add_argument("path", type=Path, metavar="FOLDER|ZIP")
    parser.add_argument(
        "--key", action="append", metavar="FINGERPRINT|FILE.pem", help="trust this key; may be repeated"
    )
    options = parser.parse_args(arguments)
    try:
        report = verify(options.path, map(fingerprint_of, options.key) if options.key else KNOWN_KEYS)
    except UnreadableInput as error:
        sys.stderr.write(f"CANNOT BE VERIFIED: {error}\n")
        return UNREADABLE
    sys.stdout.write("\n".join(summary_lines(report)) + "\n")
    return report.status


if __name__ == "__main__":
    sys.exit(main())
