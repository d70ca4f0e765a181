"""The audit trail."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.api.cursor_pages import CursorPages
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.audit_trail import entries
from workspaces.states import Role


class AuditEventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField(help_text="A user name, or a name such as `hub` or `node alpha`.")
    workspace = serializers.CharField(source="workspace.slug", default=None, allow_null=True)
    verb = serializers.CharField(help_text="What was done, for programs: `run.cancel`.")
    action = serializers.SerializerMethodField(help_text="The same in words.")
    subject = serializers.CharField(help_text="To what it was done.")
    detail = serializers.DictField()
    position = serializers.IntegerField(
        allow_null=True,
        help_text="The place in the sealed chain; null until it is sealed, some seconds later.",
    )
    seal = serializers.CharField()

    def get_action(self, event: Any) -> str:
        return entries.action_text(event.verb)


class AuditPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = AuditEventSerializer(many=True)


class AuditPages(CursorPages):
    ordering = "-id"
    page_size = 100


class AuditList(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(
        operation_id="audit_list",
        parameters=[
            OpenApiParameter("actor", str, description="Who did it: the whole name."),
            OpenApiParameter(
                "kind",
                str,
                description="Of what: the part of the verb before its dot.",
                enum=list(entries.KINDS),
            ),
            OpenApiParameter("text", str, description="A part of the subject."),
            OpenApiParameter("from", str, description="The first day (UTC), such as 2026-11-25."),
            OpenApiParameter("to", str, description="The last day (UTC)."),
            OpenApiParameter("cursor", str, description="The value of `cursor` in `next` or `previous`."),
        ],
        responses=AuditPageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Who did what, the newest first. For operators everything, for owners what happened in their
        workspace."""
        who = cast("PrincipalRequest", request).principal
        events = entries.visible_events(who)
        try:
            criteria = entries.read_filter(request.query_params)
        except entries.FilterError as error:
            raise ApiProblem(
                400, f"{error.field}: {error.message}", [(error.field, error.message)]
            ) from error
        pages = AuditPages()
        page = pages.paginate_queryset(entries.filter_events(events, criteria), request, view=self)
        return pages.get_paginated_response(AuditEventSerializer(page or [], many=True).data)
