"""The API of uploads: which files a version gets, and its end. The bytes come by
jobs.transfer.dataset_uploads, in front of Django."""

from __future__ import annotations

from collections.abc import Mapping

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from datastores.api.datasets import MAX_NUMBER, DatasetVersionSerializer, DatasetView
from datastores.models import Dataset, DatasetVersion
from datastores.uploads import comparison, completion, sessions
from datastores.uploads.comparison import FileComparison
from datastores.uploads.file_rules import SentFile
from trainhub_launch.errors import SpecError

MAX_NAMED_FILES = 1000
MAX_SIZE = 2**50


class SentFileSerializer(serializers.Serializer[SentFile]):
    path = serializers.CharField(max_length=8192, trim_whitespace=False)
    size = serializers.IntegerField(min_value=0, max_value=MAX_SIZE, help_text="In bytes.")
    modified_at = serializers.FloatField(
        required=False, allow_null=True, default=None, help_text="In seconds since 1970."
    )
    sha256 = serializers.RegexField(
        r"\A(?:[0-9a-f]{64})?\Z",
        required=False,
        default="",
        allow_blank=True,
        help_text="If it is known: a file that the workspace has already is not sent again.",
    )


class SentFilesSerializer(serializers.Serializer[FileComparison]):
    files = serializers.ListField(child=SentFileSerializer(), max_length=MAX_NAMED_FILES)


class MissingFileSerializer(serializers.Serializer[FileComparison]):
    path = serializers.CharField()
    offset = serializers.IntegerField(help_text="So many bytes of it are stored already.")


class RefusedFileSerializer(serializers.Serializer[FileComparison]):
    path = serializers.CharField()
    reason = serializers.CharField()


class ComparisonSerializer(serializers.Serializer[Mapping[str, object]]):
    missing = MissingFileSerializer(many=True, help_text="The files to send.")
    refused = RefusedFileSerializer(many=True, help_text="The files that the version cannot have.")


class FinishSerializer(serializers.Serializer[DatasetVersion]):
    files = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=MAX_SIZE,
        help_text="How many there are: refused if the hub has more or less.",
    )


class DatasetUploads(DatasetView):
    @extend_schema(request=None, responses={201: DatasetVersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Begin the upload of the next version, or go on with the one that you have begun: name all its files
        next."""
        dataset: Dataset = get_object_or_404(self.datasets(request), name=name)
        version = sessions.begin_upload(self.principal(request), dataset)
        return Response(DatasetVersionSerializer(version).data, status=201)


class _UploadView(DatasetView):
    def upload(self, request: Request, name: str, number: int) -> DatasetVersion:
        rows = DatasetVersion.objects.filter(
            dataset__workspace=self.principal(request).workspace, dataset__name=name
        )
        version: DatasetVersion = get_object_or_404(
            rows.select_related("dataset", "created_by"), number=min(number, MAX_NUMBER)
        )
        return version


class VersionUpload(_UploadView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Cancel the upload: what has come of it is forgotten."""
        sessions.cancel_upload(self.principal(request), self.upload(request, name, number))
        return Response(status=204)


class UploadFiles(_UploadView):
    @extend_schema(request=SentFilesSerializer, responses=ComparisonSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Name files of the version. The answer says which of them are to be sent, by PUT to this address
        with the path behind it."""
        version = self.upload(request, name, number)
        body = SentFilesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        sessions.require_uploader(self.principal(request), version)
        files = [SentFile(**item) for item in body.validated_data["files"]]
        try:
            compared = comparison.compare_files(version, files)
        except sessions.UploadOver as error:
            raise SpecError("version", f"{version} takes no files any more: begin another upload") from error
        missing = [{"path": file.path, "offset": offset} for file, offset in compared.missing]
        refused = [{"path": file.path, "reason": reason} for file, reason in compared.refused]
        return Response(ComparisonSerializer({"missing": missing, "refused": refused}).data)


class UploadFinish(_UploadView):
    @extend_schema(request=FinishSerializer, responses=DatasetVersionSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Make the version of the files that were sent, or that were named and are stored already."""
        version = self.upload(request, name, number)
        body = FinishSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        completion.finish_upload(self.principal(request), version, body.validated_data["files"])
        return Response(DatasetVersionSerializer(version).data)
