"""The API that writes specs in the formats of other launchers, and reads their files."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.api.schema import RUN_SPEC
from jobs.exports import FORMATS, export_spec, no_export_format
from jobs.exports.note import Outcome
from jobs.exports.spec_comment import read_spec_json
from jobs.imports import READERS, import_spec
from jobs.imports.yaml_document import MAX_TEXT_BYTES
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from workspaces.api.permissions import AtLeast
from workspaces.states import Role

SPEC: dict[str, object] = RUN_SPEC["application/json"]
_EXPORT = {
    "application/json": {
        "type": "object",
        "required": ["spec", "to"],
        "properties": {
            # One without a source has no code yet, as an import returns it.
            "spec": {**SPEC, "required": []},
            "to": {"type": "string", "enum": list(FORMATS)},
        },
    }
}
_IMPORT = {
    "application/json": {
        "type": "object",
        "required": ["from", "text"],
        "properties": {
            "from": {"type": "string", "enum": list(READERS)},
            "text": {"type": "string", "description": f"The file, at most {MAX_TEXT_BYTES // 1024} KiB."},
        },
    }
}


class SpecNoteSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(
        allow_null=True, help_text="Of the file that was read, from 1; null if there is none."
    )
    field = serializers.CharField()
    what = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    message = serializers.CharField()


class SpecExportSerializer(serializers.Serializer[Any]):
    files = serializers.DictField(
        child=serializers.CharField(), help_text="The text of each file by its name."
    )
    notes = SpecNoteSerializer(many=True, help_text="What the format cannot hold, or holds in another way.")


class SpecImportSerializer(serializers.Serializer[Any]):
    spec = serializers.DictField(help_text="A RunSpec; without `source` if the file names no code.")
    notes = SpecNoteSerializer(many=True, help_text="What became of each line that says something.")


class SpecFormatView(JobsView):
    """Nothing is created or changed."""

    permission_classes = [AtLeast(Role.VIEWER)]


class SpecExportView(SpecFormatView):
    @extend_schema(request=_EXPORT, responses=SpecExportSerializer, operation_id="specs_export")
    def post(self, request: Request) -> Response:
        """Write a spec as the files of another launcher, which run without TrainHub. Values of secrets are
        not in them."""
        fields = Fields(self.body(request))
        to, data = fields.text("to", required=True), fields.raw("spec")
        fields.finish()
        if to not in FORMATS:
            raise no_export_format(to)
        try:
            return Response(export_spec(read_spec_json(data), to).to_json())
        except SpecError as error:
            field = error.field if error.field == "spec" else f"spec.{error.field}"
            raise SpecError(field, error.message) from error


class SpecImportView(SpecFormatView):
    @extend_schema(request=_IMPORT, responses=SpecImportSerializer, operation_id="specs_import")
    def post(self, request: Request) -> Response:
        """Read a file of another launcher as a spec. The notes say what became of each line. Files of
        Determined are read by the command line and the SDK, beside their code."""
        fields = Fields(self.body(request))
        source, text = fields.text("from", required=True), fields.raw("text")
        fields.finish()
        if not isinstance(text, str):
            raise SpecError("text", "must be a string, the whole file")
        return Response(import_spec(source, text).to_json())
