"""The HTTP methods that the raw ASGI routes allow for a path, for the header `Allow`."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from starlette.routing import BaseRoute, Match, Mount, Route


def allowed_methods(routes: Iterable[BaseRoute], scope: MutableMapping[str, object]) -> list[str]:
    """Returns the allowed methods, including OPTIONS, in alphabetical order."""
    # The route that matched has changed root_path in the scope; matching again needs the original one.
    whole = {**scope, "root_path": scope.get("app_root_path", scope.get("root_path", ""))}
    return sorted({"OPTIONS", *_methods(routes, whole)})


def _methods(routes: Iterable[BaseRoute], scope: MutableMapping[str, object]) -> set[str]:
    methods: set[str] = set()
    for route in routes:
        match, below = route.matches(scope)
        if match is Match.NONE:
            continue
        if isinstance(route, Route):
            methods.update(route.methods or ())
        elif isinstance(route, Mount):
            methods |= _methods(route.routes, {**scope, **below})
    return methods
