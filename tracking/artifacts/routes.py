"""All ASGI routes for artifacts; they come before Django and before the rest of MLflow's protocol."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from tracking.artifacts import file_views, multipart, protocol

_API, _PAGES_API = "/api/2.0/", "/ajax-api/2.0/"


def _also_for_pages(routes: list[BaseRoute]) -> list[BaseRoute]:
    """Returns the same calls below /ajax-api, as MLflow's server offers every call twice."""
    return [
        Route(
            f"{_PAGES_API}{route.path.removeprefix(_API)}", route.endpoint, methods=list(route.methods or ())
        )
        for route in routes
        if isinstance(route, Route) and route.path.startswith(_API)
    ]


_protocol: list[BaseRoute] = [*protocol.routes, *multipart.routes]
routes = [*_protocol, *_also_for_pages(_protocol), *file_views.routes]
