"""Writing a version's birth certificate, and handing it out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from registry.certificates import facts, keys
from registry.models import ModelFile, ModelVersion
from registry.verifying.trainhub_verify import CERTIFICATE, SIGNATURE, TYPE, canonical

SOFTWARE = "TrainHub"


def issue(
    version: ModelVersion, files: Sequence[ModelFile], told: dict[str, Any], *, later: bool = False
) -> None:
    """Give `version` its certificate, with what is `told` of its origin (`origin_of`); raises RegistryError
    without a key."""
    key = keys.current()
    issuer = {
        "software": SOFTWARE,
        "version": settings.TRAINHUB_VERSION,
        "address": settings.PUBLIC_URL,
        "key": key.fingerprint,
    }
    manifest = facts.plain(
        {
            "type": TYPE,
            "version": 1,
            "issued_at": timezone.now(),
            "issued_later": later,
            "issuer": issuer,
            "model": _model(version),
            "files": [
                {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256} for file in files
            ],
            "origin": told,
        }
    )
    data = canonical(manifest)
    # Two that issue one late at once: the first one's stays.
    unissued = ModelVersion.objects.filter(pk=version.pk, certificate="")
    unissued.update(certificate=data.decode(), signature=key.sign(data).hex())
    version.refresh_from_db(fields=["certificate", "signature"])


def origin_of(version: ModelVersion) -> dict[str, Any]:
    """What is known now of where the version comes from; reads source and machines, so outside of
    transactions."""
    run, logged = version.run, version.logged_model
    return {
        "run": facts.of_run(run) if run else None,
        "logged_model": facts.of_logged_model(logged) if logged else None,
        "parent": _parent(version.parent) if version.parent else None,
    }


def issue_later(version: ModelVersion) -> None:
    """For a version of before there were certificates: says so itself, and tells what is known today."""
    if not version.certificate and (files := list(version.files.all())):
        issue(version, files, origin_of(version), later=True)


def manifest_of(version: ModelVersion) -> dict[str, Any]:
    return dict(orjson.loads(version.certificate)) if version.certificate else {}


def documents(version: ModelVersion) -> dict[str, bytes]:
    """Name -> bytes of what lies beside the version's files wherever they are downloaded whole; issues what
    is missing."""
    issue_later(version)
    if not version.certificate:
        return {}  # Its logged model is still being uploaded.
    data = version.certificate.encode()
    fingerprint = manifest_of(version)["issuer"]["key"]
    signature = {
        "algorithm": "Ed25519",
        "certificate_sha256": hashlib.sha256(data).hexdigest(),
        "fingerprint": fingerprint,
        "public_key": keys.public_pem(fingerprint),
        "signature": version.signature,
    }
    return {CERTIFICATE: data, SIGNATURE: orjson.dumps(signature, option=orjson.OPT_INDENT_2)}


def _model(version: ModelVersion) -> dict[str, Any]:
    return {
        "workspace": version.model.workspace.name,
        "name": version.model.name,
        "number": version.number,
        "kind": version.kind,
        "source": version.source,
        "source_path": version.source_path,
        "description": version.description,
        "registered_at": version.created_at,
        "registered_by": version.created_by.get_username() if version.created_by else "",
    }


def _parent(parent: ModelVersion) -> dict[str, Any]:
    data = parent.certificate.encode()
    return {
        "model": parent.model.name,
        "number": parent.number,
        "certificate_sha256": hashlib.sha256(data).hexdigest() if data else "",
    }
