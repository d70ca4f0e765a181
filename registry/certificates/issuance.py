"""Issues a version's birth certificate, and returns it with its signature for downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from registry.certificates import facts, keys
from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.verifying.trainhub_verify import CERTIFICATE, SIGNATURE, TYPE, canonical_json
from trainhub_launch.json_types import JsonObject

SOFTWARE = "TrainHub"


def issue(
    version: ModelVersion,
    files: Sequence[ModelFile | ReferencedFile],
    origin: dict[str, object],
    *,
    later: bool = False,
) -> None:
    """Signs and stores the certificate of `version`, unless it has one by then. `origin` is the result of
    `origin_of`.

    `later`: the certificate says that it was issued after the registration. Raises RegistryError without a
    usable key.
    """
    key = keys.current()
    issuer = {
        "software": SOFTWARE,
        "version": settings.TRAINHUB_VERSION,
        "address": settings.PUBLIC_URL,
        "key": key.fingerprint,
    }
    manifest = facts.plain_object(
        {
            "type": TYPE,
            "version": 1,
            "issued_at": timezone.now(),
            "issued_later": later,
            "issuer": issuer,
            "model": _model(version),
            "files": [_file(file) for file in files],
            "origin": origin,
        }
    )
    data = canonical_json(manifest)
    # Two that issue one late at once: the first one's stays.
    unissued = ModelVersion.objects.filter(pk=version.pk, certificate="")
    unissued.update(certificate=data.decode(), signature=key.sign(data).hex())
    version.refresh_from_db(fields=["certificate", "signature"])


def origin_of(version: ModelVersion) -> dict[str, object]:
    """Returns what is known now of the version's origin, as JSON. It reads the run's source and machines, so
    call it outside of transactions."""
    run, logged = version.run, version.logged_model
    return {
        "run": facts.of_run(run) if run else None,
        "logged_model": facts.of_logged_model(logged) if logged else None,
        "parent": _parent(version.parent) if version.parent else None,
    }


def issue_later(version: ModelVersion) -> None:
    """Issues the certificate of a version that was registered before certificates existed. It contains
    today's facts, and `issued_later`."""
    # A version without files still waits for those of its logged model (mlflow.deferred_files).
    if not version.certificate and (files := version.all_files):
        issue(version, files, origin_of(version), later=True)


def manifest_of(version: ModelVersion) -> dict[str, Any]:
    return dict(orjson.loads(version.certificate)) if version.certificate else {}


def documents(version: ModelVersion) -> dict[str, bytes]:
    """Returns file name -> bytes of the certificate and its signature file, which complete downloads include.

    Issues a missing certificate. Returns nothing while the files of a logged model are still being uploaded.
    Raises RegistryError without a usable key.
    """
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


def _model(version: ModelVersion) -> dict[str, object]:
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


def _file(file: ModelFile | ReferencedFile) -> dict[str, object]:
    """Returns a file; one in a datastore has its `place` besides, and the hash that the node said."""
    place = {"place": file.place} if isinstance(file, ReferencedFile) else {}
    return {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256, **place}


def _parent(parent: ModelVersion) -> JsonObject:
    data = parent.certificate.encode()
    return {
        "model": parent.model.name,
        "number": parent.number,
        "certificate_sha256": hashlib.sha256(data).hexdigest() if data else "",
    }
