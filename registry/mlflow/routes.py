"""The routes of MLflow's registry protocol. They must precede the routes of artifacts, which match some of
the same addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.routing import Route

from registry.mlflow import artifacts, models, versions
from tracking.callers import Caller
from tracking.mlflow.protocol.fields import CallArgs
from tracking.mlflow.protocol.http import handler_for
from workspaces.states import Role

# What clients ask, and what MLflow's own pages ask: the same calls.
ROOTS = ("/api/2.0", "/ajax-api/2.0")
Work = Callable[[Caller, CallArgs], Any]

_READS: dict[str, Work] = {
    "registered-models/get": models.get,
    "registered-models/search": models.search,
    "registered-models/list": models.search,
    "registered-models/get-latest-versions": models.latest_versions,
    "registered-models/alias": models.by_alias,
    "model-versions/get": versions.get,
    "model-versions/search": versions.search,
    "model-versions/get-download-uri": versions.download_uri,
}
_WRITES: dict[str, tuple[str, Work]] = {
    "registered-models/create": ("POST", models.create),
    "registered-models/rename": ("POST", models.rename),
    "registered-models/update": ("PATCH", models.update),
    "registered-models/set-tag": ("POST", models.set_tag),
    "registered-models/delete-tag": ("DELETE", models.delete_tag),
    "model-versions/create": ("POST", versions.create),
    "model-versions/update": ("PATCH", versions.update),
    "model-versions/set-tag": ("POST", versions.set_tag),
    "model-versions/delete-tag": ("DELETE", versions.delete_tag),
    "model-versions/transition-stage": ("POST", versions.transition_stage),
}
_DELETES: dict[str, Work] = {
    "registered-models/delete": models.delete,
    "model-versions/delete": versions.delete,
}


def _below(root: str) -> list[Route]:
    base, artifact = f"{root}/mlflow", f"{root}/mlflow-artifacts/artifacts"
    writes = [(path, method, work, Role.CONTRIBUTOR) for path, (method, work) in _WRITES.items()]
    writes += [(path, "DELETE", work, Role.OWNER) for path, work in _DELETES.items()]
    return [
        *(Route(f"{base}/{path}", handler_for(work), methods=["GET"]) for path, work in _READS.items()),
        Route(
            f"{base}/registered-models/get-latest-versions",
            handler_for(models.latest_versions),
            methods=["POST"],
        ),
        Route(
            f"{base}/registered-models/alias",
            handler_for(models.set_alias, role=Role.CONTRIBUTOR),
            methods=["POST"],
        ),
        Route(
            f"{base}/registered-models/alias",
            handler_for(models.delete_alias, role=Role.CONTRIBUTOR),
            methods=["DELETE"],
        ),
        *(
            Route(f"{base}/{path}", handler_for(work, role=role), methods=[method])
            for path, method, work, role in writes
        ),
        Route(artifact, handler_for(artifacts.list_artifacts), methods=["GET"]),
        Route(f"{artifact}/models/{{path:path}}", artifacts.fetch, methods=["GET", "HEAD"]),
        Route(f"{artifact}/models/{{path:path}}", artifacts.refuse, methods=["PUT", "DELETE"]),
    ]


routes = [route for root in ROOTS for route in _below(root)]
