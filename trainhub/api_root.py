"""`/api/v1/`: what the REST API has, for programs. The page `/api/` lists the same with every operation, for
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
_COLLECTION = re.compile(r"api/v1/([a-z-]+)/\Z")


class ApiRootSerializer(serializers.Serializer[Any]):
    collections = serializers.DictField(
        child=serializers.URLField(),
        help_text="Name of each collection -> its address, such as that of runs.",
    )
    schema = serializers.URLField(help_text="The OpenAPI document: every operation, parameter and answer.")
    docs = serializers.URLField(help_text="The page for people, with every operation.")


class ApiRoot(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="root", responses=ApiRootSerializer)
    def get(self, request: Request) -> Response:
        """The addresses of all collections, of the OpenAPI document and of the page that lists every
        operation."""
        found = {name: request.build_absolute_uri(f"/api/v1/{name}/") for name in collections()}
        schema, docs = (request.build_absolute_uri(reverse(name)) for name in ("api-schema", "api"))
        return Response({"collections": found, "schema": schema, "docs": docs})


@lru_cache(maxsize=1)
def collections() -> tuple[str, ...]:
    """The names directly below /api/v1/, in order; routes cannot change while the process lives."""
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
