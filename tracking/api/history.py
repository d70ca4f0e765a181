"""API for the run table: keys, completion, stars, pins, tags and bulk actions."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import tags
from jobs.api.base import JobsView
from tracking.history import bulk, key_catalog, stars_and_pins
from tracking.history.completion import complete
from tracking.search.vocabulary import ATTRIBUTES, OPERATORS
from trainhub_launch.errors import SpecError
from workspaces.api.permissions import AtLeast
from workspaces.api.problems import ApiProblem
from workspaces.states import Role


class AttributeSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    type = serializers.CharField(
        help_text="The type of the values: text, word (one of a fixed set), number, time or flag."
    )
    operators = serializers.ListField(child=serializers.CharField())


class KeysSerializer(serializers.Serializer[object]):
    metrics = serializers.ListField(child=serializers.CharField())
    params = serializers.ListField(child=serializers.CharField())
    tags = serializers.ListField(child=serializers.CharField())
    attributes = AttributeSerializer(many=True)


class OfferSerializer(serializers.Serializer[object]):
    text = serializers.CharField()
    kind = serializers.CharField()


class CompletionSerializer(serializers.Serializer[object]):
    begin = serializers.IntegerField(
        help_text="The position in the filter; a completion replaces the text from here to the cursor."
    )
    offers = OfferSerializer(many=True)


class TagSerializer(serializers.Serializer[object]):
    value = serializers.CharField(allow_blank=True, max_length=bulk.MAX_VALUE_LENGTH, trim_whitespace=False)


class BulkSerializer(serializers.Serializer[object]):
    verb = serializers.ChoiceField(list(bulk.ACTIONS))
    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1),
        max_length=bulk.MAX_RUNS,
        help_text="The numbers of the runs.",
    )
    key = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="The tag's key; used by `tag` and `untag`."
    )
    value = serializers.CharField(required=False, default="", allow_blank=True)


class RefusalSerializer(serializers.Serializer[object]):
    run = serializers.IntegerField()
    why = serializers.CharField()


class ReportSerializer(serializers.Serializer[object]):
    done = serializers.ListField(child=serializers.IntegerField())
    refused = RefusalSerializer(many=True)


class RunKeys(JobsView):
    @extend_schema(responses=KeysSerializer)
    def get(self, request: Request) -> Response:
        """Keys that the workspace's runs can be filtered and ordered by."""
        keys = key_catalog.workspace_keys(self.principal(request).workspace)
        attributes = [
            {"name": name, "type": type_.value, "operators": OPERATORS[type_]}
            for name, type_ in ATTRIBUTES.items()
        ]
        return Response(
            {"metrics": keys.metrics, "params": keys.params, "tags": keys.tags, "attributes": attributes}
        )


class FilterCompletion(JobsView):
    @extend_schema(
        responses=CompletionSerializer,
        parameters=[
            OpenApiParameter("filter", str, description="The text of the filter as typed so far."),
            OpenApiParameter(
                "at",
                int,
                description="The position of the cursor in characters; by default the end of the text.",
            ),
        ],
    )
    def get(self, request: Request) -> Response:
        """Completions at the cursor of a filter."""
        text, at = request.query_params.get("filter", ""), request.query_params.get("at", "")
        if at and not (at.isascii() and at.isdecimal() and len(at) < 10):
            raise SpecError("at", "must be a position in the filter")
        result = complete(
            self.principal(request).workspace, text, min(int(at), len(text)) if at else len(text)
        )
        return Response(CompletionSerializer(result).data)


class RunStar(JobsView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(request=None, responses={204: None})
    def put(self, request: Request, run: str) -> Response:
        """Star the run for yourself; the filter `starred` finds it."""
        stars_and_pins.star(self.run(request, run), self.principal(request).user)
        return Response(status=204)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, run: str) -> Response:
        """Remove your star."""
        stars_and_pins.unstar(self.run(request, run), self.principal(request).user)
        return Response(status=204)


class RunPin(JobsView):
    @extend_schema(request=None, responses={204: None})
    def put(self, request: Request, run: str) -> Response:
        """Pin the run, so that every comparison in the workspace shows it."""
        stars_and_pins.pin(self.run(request, run), self.principal(request).user)
        return Response(status=204)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, run: str) -> Response:
        """Unpin the run."""
        stars_and_pins.unpin(self.run(request, run), self.principal(request).user)
        return Response(status=204)


class RunTagView(JobsView):
    @extend_schema(request=TagSerializer, responses={204: None})
    def put(self, request: Request, run: str, key: str) -> Response:
        """Set a tag, replacing its value."""
        serializer = TagSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        result = self.run(request, run)
        report = bulk.apply_to_runs(
            self.principal(request), "tag", [result.number], key=key, value=serializer.validated_data["value"]
        )
        if report.refused:
            raise ApiProblem(400, report.refused[result.number])
        return Response(status=204)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, run: str, key: str) -> Response:
        """Delete a tag."""
        if not tags.delete_tags(self.run(request, run), [key]):
            raise Http404
        return Response(status=204)


class RunBulk(JobsView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(request=BulkSerializer, responses=ReportSerializer)
    def post(self, request: Request) -> Response:
        """Apply an action to many runs. The response lists the runs for which it failed, with reasons."""
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        try:
            report = bulk.apply_to_runs(
                self.principal(request), data["verb"], data["runs"], key=data["key"], value=data["value"]
            )
        except bulk.BulkNotAllowed as error:
            raise ApiProblem(403, str(error)) from error
        refused = [{"run": number, "why": why} for number, why in report.refused.items()]
        return Response({"done": report.done, "refused": refused})
