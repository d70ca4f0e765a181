"""Every route of the hub, enumerated from Django's resolver, the Starlette routes in front of it, and the
sockets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from starlette.routing import BaseRoute, Mount, Route

from clusters.consumers import routes as cluster_sockets
from jobs.consumers import routes as job_sockets
from tracking.mlflow.routes import ROOTS
from trainhub.asgi import raw_routes

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
TRACKING_ROOT = "{tracking}"
"""Stands for the four addresses below which MLflow's tracking protocol is served alike."""


@dataclass(frozen=True, order=True)
class HubRoute:
    """One address. `methods`: those that it offers, as far as its code says; a page may refuse some of them
    itself."""

    kind: str
    path: str
    methods: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


def all_routes() -> list[HubRoute]:
    """Each address once, sorted."""
    found = {
        str(route): route
        for route in (*_django(get_resolver()), *_merged(_starlette(raw_routes)), *_sockets())
    }
    return sorted(found.values())


def _django(resolver: Any, prefix: str = "") -> Iterator[HubRoute]:
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _django(pattern, path)
        elif isinstance(pattern, URLPattern):
            yield HubRoute("django", f"/{path}", _methods_of(pattern.callback))


def _methods_of(view: Any) -> tuple[str, ...]:
    """A class says its methods; of a function they are found by trying."""
    view_class = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if view_class is None:
        return ("GET", "POST")
    return tuple(method for method in ("GET", *CHANGING) if hasattr(view_class, method.lower()))


def _starlette(routes: list[BaseRoute], prefix: str = "") -> Iterator[HubRoute]:
    for route in routes:
        if isinstance(route, Route):
            methods = tuple(sorted((route.methods or {"GET"}) - {"HEAD"})) or ("HEAD",)
            yield HubRoute("raw", prefix + route.path_format, methods)
        elif isinstance(route, Mount) and route.routes:
            yield from _starlette(route.routes, TRACKING_ROOT if route.path in ROOTS else prefix + route.path)
        elif isinstance(route, Mount):
            yield HubRoute("raw", f"{prefix}{route.path}/**", ("GET",))


def _merged(routes: Iterator[HubRoute]) -> Iterator[HubRoute]:
    """Starlette has a route for each method; here an address stands once."""
    methods: dict[str, set[str]] = {}
    for route in routes:
        methods.setdefault(route.path, set()).update(route.methods)
    for path, found in methods.items():
        yield HubRoute("raw", path, tuple(sorted(found)))


def _sockets() -> Iterator[HubRoute]:
    for pattern in (*job_sockets, *cluster_sockets):
        yield HubRoute("socket", f"/{pattern.pattern}", ("GET",))
