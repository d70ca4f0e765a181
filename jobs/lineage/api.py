"""The API of lineage: versions of datasets that were made from outputs of runs, and who reads a version."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from datastores.api.datasets import MAX_NUMBER, DatasetVersionSerializer
from datastores.models import DatasetVersion
from jobs.api.base import JobsView
from jobs.lineage import output_versions
from jobs.models import DatasetOrigin

MAX_PATH = 1000
MAX_RUNS = 1000


class OriginSerializer(serializers.Serializer[object]):
    dataset = serializers.CharField(source="version.dataset.name")
    version = serializers.IntegerField(source="version.number")
    run = serializers.CharField(source="run_id", allow_null=True, help_text="Its id; null once it is purged.")
    run_number = serializers.IntegerField()
    attempt = serializers.IntegerField(help_text="0 for a run that a client has logged.")
    path = serializers.CharField(help_text="What of its outputs; empty for all.")


class OutputDatasetSerializer(serializers.Serializer[object]):
    name = serializers.CharField(
        max_length=100, help_text="Of the dataset. If there is one, it gets the next version."
    )
    path = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=MAX_PATH,
        help_text="A folder or file of the outputs, such as outputs/features; by default all of them.",
    )
    attempt = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_NUMBER,
        help_text="By default the latest one, with the files that only earlier attempts left.",
    )
    datastore = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=100,
        help_text="Of the kind hub; by default that of the dataset, or the first one.",
    )


class ReaderSerializer(serializers.Serializer[object]):
    id = serializers.CharField()
    number = serializers.IntegerField()
    display_name = serializers.CharField()
    state = serializers.CharField()


class LineageSerializer(serializers.Serializer[object]):
    origin = OriginSerializer(
        allow_null=True, help_text="The outputs from which it was made; null if it was not."
    )
    runs = ReaderSerializer(many=True, help_text=f"Those that read it, the newest first, at most {MAX_RUNS}.")


class RunDatasets(JobsView):
    @extend_schema(operation_id="run_datasets_list", responses=OriginSerializer(many=True))
    def get(self, request: Request, run: str) -> Response:
        """The versions of datasets that were made from the outputs of the run."""
        rows = output_versions.list_versions(self.run(request, run))
        return Response(OriginSerializer(rows, many=True).data)

    @extend_schema(request=OutputDatasetSerializer, responses={201: DatasetVersionSerializer})
    def post(self, request: Request, run: str) -> Response:
        """Make a dataset, or its next version, of files that the run left as its outputs."""
        instance = self.run(request, run)
        body = OutputDatasetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        version = output_versions.make_version(self.principal(request), instance, **body.validated_data)
        return Response(DatasetVersionSerializer(version).data, status=201)


class VersionLineage(JobsView):
    @extend_schema(responses=LineageSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """From which run a version of a dataset was made, and which runs read it."""
        versions = DatasetVersion.objects.filter(
            dataset__workspace=self.principal(request).workspace, dataset__name=name
        )
        version = get_object_or_404(versions, number=min(number, MAX_NUMBER))
        origin = DatasetOrigin.objects.filter(version=version).select_related("version__dataset").first()
        readers = self.runs(request).filter(dataset_uses__version=version).order_by("-number")
        return Response(LineageSerializer({"origin": origin, "runs": readers[:MAX_RUNS]}).data)
