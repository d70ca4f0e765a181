"""The byte routes in the OpenAPI schema: they stand in front of Django, where the generator does not look."""

from __future__ import annotations

import inspect
import re
from typing import Any

from starlette.routing import Route

from jobs.bytes import routes as job_bytes
from registry.bytes.routes import routes as model_bytes
from tracking.curves.download import routes as curve_files

NODES_OWN = "/api/v1/node/"
BYTES = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "description": ""}


def add_bytes(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Postprocessing hook of drf-spectacular."""
    for route in (*job_bytes, *model_bytes, *curve_files):
        if not route.path.startswith(NODES_OWN):
            operations = result["paths"].setdefault(route.path_format, {})
            for method in sorted((route.methods or set()) - ({"HEAD"} if "GET" in (route.methods or ()) else set())):
                operations[method.lower()] = _operation(route, method)
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def _operation(route: Route, method: str) -> dict[str, Any]:
    told = (inspect.getdoc(route.endpoint) or "").removeprefix(f"{method}: ")
    names = re.findall(r"{(\w+)}", route.path_format)
    return {
        "operationId": f"{route.name}_{method.lower()}",
        "description": told[:1].upper() + told[1:],
        "parameters": [{"in": "path", "name": name, "required": True, "schema": {"type": "string"}} for name in names],
        "tags": [route.path.split("/")[3]],
        "security": [{"token": []}],
        "responses": {"200": BYTES},
    }
