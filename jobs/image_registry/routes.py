"""The raw routes of the registry: `/v2/`, manifests and blobs. Errors have the form of the protocol, whose
messages docker and podman show."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from environments.images import image_store
from environments.images.manifest import Layer
from environments.states import EnvironmentKind
from jobs.image_registry.layers import LayerUnavailable, arriving
from jobs.image_registry.tickets import OrderedImage, image_of_ticket
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import OCTETS, PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

VERSION = {"Docker-Distribution-Api-Version": "registry/2.0"}
CHALLENGE = {"WWW-Authenticate": 'Basic realm="TrainHub", charset="UTF-8"'}


async def root(request: Request) -> Response:
    """Says that this is a registry, to whoever holds a ticket."""
    image = await _image(request)
    return _unauthorized() if image is None else JSONResponse({}, headers={**VERSION, **PRIVATE})


async def manifest(request: Request) -> Response:
    """Serves the manifest that the lock names, by its digest only."""
    image, digest = await _image(request), request.path_params["digest"]
    if image is None:
        return _unauthorized()
    if request.path_params["version"] != image.version.pk or digest != image.lock.digest:
        return _refusal(404, "MANIFEST_UNKNOWN", "The order names another image.")
    part = Layer(digest, image.lock.manifest_size, image.lock.media_type)
    if not await _is_stored(image, part):
        return _missing(part)
    return _stored(part, image.lock.media_type)


async def blob(request: Request) -> Response:
    """Serves the configuration or a layer: from the store, or else while it arrives from its registry."""
    image, digest = await _image(request), request.path_params["digest"]
    if image is None:
        return _unauthorized()
    part = image.lock.blobs.get(digest)
    if request.path_params["version"] != image.version.pk or part is None:
        return _refusal(404, "BLOB_UNKNOWN", "The image of the order has no such part.")
    if await _is_stored(image, part):
        return _stored(part, OCTETS)
    if image.version.kind == EnvironmentKind.DOCKERFILE:
        # No registry has it.
        return _missing(part)
    headers = _headers(part, OCTETS)
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(part.size)})
    pieces = arriving(image, part)
    try:
        # Before the answer begins, so that it can still be an error.
        first = await anext(pieces, b"")
    except LayerUnavailable as error:
        return _refusal(502, "UNKNOWN", str(error))
    return StreamingResponse(_following(first, pieces), headers={**headers, "Content-Length": str(part.size)})


async def _following(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


async def _image(request: Request) -> OrderedImage | None:
    ticket = _ticket(request.headers.get("authorization", ""))
    return await in_thread(image_of_ticket, ticket) if ticket else None


def _ticket(header: str) -> str:
    """Returns the ticket: the password of Basic authentication, with any user name, or a Bearer token."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


async def _is_stored(image: OrderedImage, part: Layer) -> bool:
    return await in_thread(image_store.is_stored, image.version, image.workspace, part.sha256, part.size)


def _stored(part: Layer, media_type: str) -> Response:
    return StoredFileResponse(
        blobs.path(part.sha256), sha256=part.sha256, media_type=media_type, headers=_headers(part, media_type)
    )


def _headers(part: Layer, media_type: str) -> dict[str, str]:
    return {**VERSION, **PRIVATE, "Docker-Content-Digest": part.digest, "Content-Type": media_type}


def _unauthorized() -> Response:
    message = "The ticket of the order is needed. It ends with the node's part of the attempt."
    return _refusal(401, "UNAUTHORIZED", message, CHALLENGE)


def _missing(part: Layer) -> Response:
    message = (
        f"The bytes of {part.digest} {blobs.absence(part.sha256)}; or make a new version of the environment"
    )
    return _refusal(404, "MANIFEST_UNKNOWN", f"{message}.")


def _refusal(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    body = {"errors": [{"code": code, "message": message}]}
    return JSONResponse(body, status, headers={**VERSION, **PRIVATE, **(headers or {})})
