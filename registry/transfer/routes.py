"""Routes that transfer files of models. They stream and support Range, and do not pass through Django."""

from __future__ import annotations

from starlette.routing import Route

from registry.transfer import downloads, uploads

_VERSION = "/api/v1/models/{name}/versions/{version}"
routes = [
    Route("/api/v1/models/{name}/versions/upload", uploads.take, methods=["POST"]),
    Route(f"{_VERSION}/files/{{path:path}}", downloads.file, methods=["GET", "HEAD"]),
    Route(f"{_VERSION}/zip", downloads.whole, methods=["GET", "HEAD"]),
    Route(f"{_VERSION}/certificate", downloads.certificate, methods=["GET"]),
    Route(f"{_VERSION}/signature", downloads.signature, methods=["GET"]),
    Route("/api/v1/verifier/trainhub_verify.py", downloads.verifier, methods=["GET"]),
]
