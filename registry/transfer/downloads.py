"""Downloads of versions: a file, all files as a zip, the certificate, and the script that verifies them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from registry.certificates import keys
from registry.certificates.issuance import documents
from registry.errors import RegistryError
from registry.lookup import find_model_file, version_of
from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.scanning.verdicts import verdict
from registry.transfer.file_responses import SCAN, certificate_file, model_file
from registry.verifying import trainhub_verify
from registry.verifying.trainhub_verify import CERTIFICATE, SIGNATURE
from tracking.artifacts.file_responses import HEADERS
from tracking.callers import Caller, caller_of
from workspaces.http.problems import Problem, not_found, problem_responses, unauthorized
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs, zip_stream

NOT_THERE = "There is no such model, version or file, or you may not see it."
STILL_UPLOADED = "The files of this version are still being uploaded; its certificate is issued with them."
# The line of trainhub_verify.py that `_script` replaces; it must be spelled as it is there.
UNPINNED = "KNOWN_KEYS: tuple[str, ...] = ()\n"


@problem_responses
async def file(request: Request) -> Response:
    """One file of a version. `version` is a number or an alias."""
    who = await _caller(request)
    return model_file(await in_thread(_file, who, request.path_params), who.user)


@problem_responses
async def whole(request: Request) -> Response:
    """All files of a version and its certificate as one zip; supports Range. `version` is a number or an
    alias."""
    who = await _caller(request)
    version, entries = await in_thread(_entries, who, request.path_params)
    filename = f"{version.model.name}-{version.number}.zip"
    return await zip_stream.response(request, entries, filename, headers={**HEADERS, SCAN: verdict(version)})


@problem_responses
async def certificate(request: Request) -> Response:
    """The version's birth certificate as canonical JSON. The signature covers exactly these bytes."""
    return await _document(request, CERTIFICATE)


@problem_responses
async def signature(request: Request) -> Response:
    """The signature of the version's birth certificate, with the public key that verifies it."""
    return await _document(request, SIGNATURE)


@problem_responses
async def verifier(request: Request) -> Response:
    """A Python script that verifies downloaded models offline. It trusts the signing keys of this
    TrainHub."""
    await _caller(request)
    data = await in_thread(_script)
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="trainhub_verify.py"'}
    return Response(data, media_type="text/x-python; charset=utf-8", headers=headers)


async def _document(request: Request, name: str) -> Response:
    who = await _caller(request)
    version = await in_thread(_version, who, request.path_params)
    data = (await in_thread(_documents, version)).get(name)
    if data is None:
        raise not_found(STILL_UPLOADED)
    return certificate_file(name, data)


async def _caller(request: Request) -> Caller:
    caller = await caller_of(request.scope)
    if caller is None:
        raise unauthorized("Sign in, or send a token: Authorization: Bearer TOKEN.")
    return caller


def _version(who: Caller, parts: Mapping[str, str]) -> ModelVersion:
    version = version_of(who.workspace, parts["name"], parts["version"])
    if version is None:
        raise not_found(NOT_THERE)
    return version


def _file(who: Caller, parts: Mapping[str, str]) -> ModelFile | ReferencedFile:
    row = find_model_file(_version(who, parts), parts["path"])
    if row is None:
        raise not_found(NOT_THERE)
    return _check_stored(row) if isinstance(row, ModelFile) else row


def _check_stored(file: ModelFile) -> ModelFile:
    if not blobs.exists(file.sha256):
        raise not_found(f"The bytes of {file.path} {blobs.absence(file.sha256)}.")
    return file


def _entries(who: Caller, parts: Mapping[str, str]) -> tuple[ModelVersion, list[zip_stream.ZipEntry]]:
    version = _version(who, parts)
    if (referenced := version.referenced_files.first()) is not None:
        # Otherwise the zip would lack them without a word.
        raise Problem(
            409,
            "Not readable by the hub",
            f"Files in a datastore are in no zip: {version.referenced_files.count()} of this version, such "
            f"as {referenced.place}. Download them one by one, or all files with MLflow's client.",
        )
    folder = f"{version.model.name}-{version.number}"
    entries = [
        zip_stream.ZipEntry(f"{folder}/{name}", data, version.created_at)
        for name, data in _documents(version).items()
    ]
    for item in version.files.all():
        # Checked for every file before the response begins: later, a missing file could only cut the zip off.
        sha256 = _check_stored(item).sha256
        entries.append(
            zip_stream.ZipEntry(f"{folder}/{item.path}", blobs.path(sha256), version.created_at, sha256)
        )
    return version, entries


def _documents(version: ModelVersion) -> dict[str, bytes]:
    try:
        return documents(version)
    except RegistryError as error:
        raise _no_key(error) from error


def _script() -> str:
    try:
        keys_text = "".join(f'    "{key.fingerprint}",\n' for key in keys.public_keys())
    except RegistryError as error:
        raise _no_key(error) from error
    return (
        Path(trainhub_verify.__file__)
        .read_text()
        .replace(UNPINNED, f"KNOWN_KEYS: tuple[str, ...] = (\n{keys_text})\n")
    )


def _no_key(error: RegistryError) -> Problem:
    return Problem(500, "No signing key", f"{error.message}.")
