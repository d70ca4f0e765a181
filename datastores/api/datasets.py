"""The API of datasets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from datastores.changes import MAX_DESCRIPTION
from datastores.datasets import changes, file_list
from datastores.datasets.newest import newest_versions
from datastores.datasets.tags import filter_by_tag
from datastores.folder_path import MAX_LENGTH
from datastores.models import Dataset, DatasetVersion
from datastores.states import ListingState
from trainhub_launch.data.manifests import ListedFile
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role

MOST_FILES = 1000
MAX_START = 2**40
MAX_NUMBER = 2**31 - 1


class DatasetVersionSerializer(serializers.Serializer[DatasetVersion]):
    dataset = serializers.CharField(source="dataset.name")
    version = serializers.IntegerField(source="number")
    state = serializers.ChoiceField(choices=[state.value for state in ListingState])
    failure = serializers.CharField(help_text="Why there is no list of its files; empty if there is one.")
    files = serializers.IntegerField(help_text="How many files it has; while they are listed, up to now.")
    bytes = serializers.IntegerField(help_text="How large they are together.")
    manifest = serializers.SerializerMethodField(
        help_text="The SHA-256 of the list of its files; null without one."
    )
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Since when its list is there.")

    def get_manifest(self, version: DatasetVersion) -> str | None:
        return version.manifest.sha256 if version.is_ready else None


class ListedDatasetSerializer(serializers.Serializer[Dataset]):
    name = serializers.CharField()
    datastore = serializers.CharField(source="datastore.name")
    path = serializers.CharField(help_text="Below the datastore; empty for all of it.")
    description = serializers.CharField()
    tags = serializers.DictField(child=serializers.CharField())
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    newest = serializers.SerializerMethodField(
        help_text="The newest version that is ready; without one, the newest version."
    )

    @extend_schema_field(DatasetVersionSerializer(allow_null=True))
    def get_newest(self, dataset: Dataset) -> object:
        version = self.context["newest"].get(dataset.pk)
        return DatasetVersionSerializer(version).data if version is not None else None


class DatasetSerializer(ListedDatasetSerializer):
    versions = DatasetVersionSerializer(many=True, help_text="The newest first.")


class NewDatasetSerializer(serializers.Serializer[Dataset]):
    name = serializers.CharField(max_length=100)
    datastore = serializers.CharField(max_length=100)
    path = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_LENGTH)
    description = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=MAX_DESCRIPTION
    )
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class DatasetChangeSerializer(serializers.Serializer[Dataset]):
    description = serializers.CharField(required=False, allow_blank=True, max_length=MAX_DESCRIPTION)
    tags = serializers.DictField(
        child=serializers.CharField(allow_blank=True, allow_null=True),
        required=False,
        help_text="Tags to set, each mapped to its value; null removes the tag. Other tags are unchanged.",
    )


class ListedFileSerializer(serializers.Serializer[ListedFile]):
    path = serializers.CharField()
    size = serializers.IntegerField(help_text="In bytes.")
    etag = serializers.CharField(
        help_text="What the store says about this version of the file; may be empty."
    )
    modified_at = serializers.DateTimeField()

    def to_representation(self, instance: ListedFile) -> dict[str, object]:
        return {**instance._asdict(), "modified_at": datetime.fromtimestamp(instance.modified_at, UTC)}


class FilePageSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="Of all files of the version.")
    start = serializers.IntegerField()
    files = ListedFileSerializer(many=True)


class ChangedFilesSerializer(serializers.Serializer[file_list.Changed]):
    files = serializers.IntegerField()
    first = ListedFileSerializer(many=True, help_text=f"The first {file_list.MAX_NAMED} of them.")


class DifferencesSerializer(serializers.Serializer[file_list.Differences]):
    since = serializers.IntegerField(help_text="The earlier version.")
    added = ChangedFilesSerializer()
    removed = ChangedFilesSerializer()
    changed = ChangedFilesSerializer()


class DatasetView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def datasets(self, request: Request) -> Any:
        rows = Dataset.objects.filter(workspace=self.principal(request).workspace)
        return rows.select_related("datastore", "created_by")

    def dataset(self, request: Request, name: str) -> Dataset:
        related = ("versions__dataset", "versions__manifest", "versions__created_by")
        rows = self.datasets(request).prefetch_related(*related)
        dataset: Dataset = get_object_or_404(rows, name=name)
        return dataset

    def newest(self, request: Request) -> dict[str, object]:
        """Returns what the serializers of datasets need besides."""
        return {"newest": newest_versions(self.principal(request).workspace)}

    def version(self, request: Request, name: str, number: int) -> DatasetVersion:
        versions = DatasetVersion.objects.filter(
            dataset__workspace=self.principal(request).workspace, dataset__name=name
        )
        if number > MAX_NUMBER:
            raise Http404
        version: DatasetVersion = get_object_or_404(
            versions.select_related("dataset", "manifest", "created_by"), number=number
        )
        return version


class DatasetList(DatasetView):
    @extend_schema(
        operation_id="datasets_list",
        parameters=[
            OpenApiParameter(
                "tag",
                str,
                description="Only those with this tag, written as name or as name=value.",
            )
        ],
        responses=ListedDatasetSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """The datasets of the workspace, each with its newest version."""
        rows = self.datasets(request)
        if "tag" in request.query_params:
            rows = filter_by_tag(rows, request.query_params["tag"])
        return Response(ListedDatasetSerializer(rows, many=True, context=self.newest(request)).data)

    @extend_schema(request=NewDatasetSerializer, responses={201: DatasetVersionSerializer})
    def post(self, request: Request) -> Response:
        """Name files of a datastore. The hub lists them: the answer is the first version, whose state
        tells when its list is there. Of a datastore of the kind hub it waits for files that you upload."""
        body = NewDatasetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        version = changes.create(self.principal(request), **body.validated_data)
        return Response(DatasetVersionSerializer(version).data, status=201)


class DatasetDetail(DatasetView):
    @extend_schema(responses=DatasetSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One dataset, with all its versions."""
        dataset = self.dataset(request, name)
        return Response(DatasetSerializer(dataset, context=self.newest(request)).data)

    @extend_schema(request=DatasetChangeSerializer, responses=DatasetSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the description, or tags."""
        dataset = self.dataset(request, name)
        body = DatasetChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes.describe(self.principal(request), dataset, **body.validated_data)
        return Response(DatasetSerializer(dataset, context=self.newest(request)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a dataset with its lists. Its files stay where they are; those that were uploaded go, too.
        Refused while a run names it."""
        changes.delete(self.principal(request), self.dataset(request, name))
        return Response(status=204)


class DatasetRefresh(DatasetView):
    @extend_schema(request=None, responses={202: DatasetVersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """List the files anew, as the next version; the one that is listed already, if there is one."""
        version = changes.refresh(self.principal(request), self.dataset(request, name))
        return Response(DatasetVersionSerializer(version).data, status=202)


class DatasetVersionDetail(DatasetView):
    @extend_schema(responses=DatasetVersionSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One version."""
        return Response(DatasetVersionSerializer(self.version(request, name, number)).data)


class VersionFiles(DatasetView):
    @extend_schema(
        parameters=[
            OpenApiParameter("start", int, description="The number of the first one, from 0 on."),
            OpenApiParameter("count", int, description=f"How many, at most {MOST_FILES}; 100 by default."),
        ],
        responses=FilePageSerializer,
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """Some of the files of a version, in the order of their folders and names."""
        version = _ready(self.version(request, name, number))
        start = _whole(request, "start", 0, least=0, most=MAX_START)
        count = _whole(request, "count", 100, least=1, most=MOST_FILES)
        files = file_list.read_page(version, start, count)
        return Response(FilePageSerializer({"count": version.files, "start": start, "files": files}).data)


class VersionDifferences(DatasetView):
    @extend_schema(
        parameters=[
            OpenApiParameter("since", int, description="The earlier version; by default the one before.")
        ],
        responses=DifferencesSerializer,
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """What is added, removed and changed since an earlier version."""
        version = _ready(self.version(request, name, number))
        if number == 1 and "since" not in request.query_params:
            raise SpecError("since", f"{version} is the first version, so there is none before it; name one")
        since = _whole(request, "since", number - 1, least=1, most=MAX_NUMBER)
        earlier = _ready(self.version(request, name, since))
        stored = file_list.differences_of(version)
        if stored is None or stored.since != since:
            stored = file_list.compare(earlier, version.manifest)
        return Response(DifferencesSerializer(stored).data)


def _ready(version: DatasetVersion) -> DatasetVersion:
    """Raises SpecError unless the version has a list."""
    if not version.is_ready:
        raise SpecError("version", f"{version} has no list of its files: it is {version.state}")
    return version


def _whole(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    """Returns a parameter of the address. Raises SpecError."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15 or not least <= int(text) <= most:
        raise SpecError(name, f"must be a whole number from {least} to {most}")
    return int(text)
