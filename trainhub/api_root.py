"""`/api/v1/`: lists the collections of the REST API for programs. The page `/api/` lists every operation for
people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.api.permissions import AtLeast
from workspaces.states import Role

SCHEMA = "schema"
# The end is part of the pattern: addresses below a collection, such as those of single objects, do not match.
_COLLECTION = re.compile(r"api/v1/([a-z-]+)/\Z")


class ApiRootSerializer(serializers.Serializer[Any]):
    collections = serializers.DictField(
        child=serializers.URLField(),
        help_text="The name of each collection, such as `runs`, mapped to its address.",
    )
    schema = serializers.URLField(
        help_text="The address of the OpenAPI document, which describes every operation."
    )
    docs = serializers.URLField(
        help_text="The address of the page that documents every operation for people."
    )


class ApiRoot(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="root", responses=ApiRootSerializer)
    def get(self, request: Request) -> Response:
        """The addresses of all collections, of the OpenAPI document and of the page that lists every
        operation."""
        addresses = {name: request.build_absolute_uri(f"/api/v1/{name}/") for name in collections()}
        schema, docs = (request.build_absolute_uri(reverse(name)) for name in ("api-schema", "api"))
        return Response({"collections": addresses, "schema": schema, "docs": docs})


@lru_cache(maxsize=1)
def collections() -> tuple[str, ...]:
    """Returns the names directly below /api/v1/, sorted. Cached, because routes cannot change while the
    process runs."""
    names = {
        match[1] for route in _routes(get_resolver().url_patterns) if (match := _COLLECTION.match(route))
    }
    return tuple(sorted(names - {SCHEMA}))


def _routes(patterns: Iterable[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        else:
            yield route
